// Tells ThreadSanitizer of the waits of Synchronization.Mutex.
//
// The fast paths of the mutex are compiled into its callers, where the sanitizer sees their atomic accesses. A thread that
// must wait, and a thread that must wake one, call the library, which is not instrumented: accesses under the lock would
// look unordered. These functions stand before the library's, call them, and report the order to the sanitizer.
//
// Symbols and calling convention: stdlib/public/Synchronization/Mutex/LinuxImpl.swift. The address of the handle is the
// address of its atomic word.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context)) void *self

void __tsan_acquire(void *address);
void __tsan_release(void *address);

typedef SWIFT void (*lock_function)(uint32_t, SELF);
typedef SWIFT bool (*try_lock_function)(SELF);
typedef SWIFT void (*unlock_function)(SELF);

SWIFT void heliograph_lock(uint32_t thread, SELF) __asm__(LOCK);
SWIFT bool heliograph_try_lock(SELF) __asm__(TRY_LOCK);
SWIFT void heliograph_unlock(SELF) __asm__(UNLOCK);

static lock_function library_lock;
static try_lock_function library_try_lock;
static unlock_function library_unlock;

__attribute__((constructor)) static void find_library_functions(void) {
    library_lock = (lock_function)dlsym(RTLD_NEXT, LOCK);
    library_try_lock = (try_lock_function)dlsym(RTLD_NEXT, TRY_LOCK);
    library_unlock = (unlock_function)dlsym(RTLD_NEXT, UNLOCK);
}

SWIFT void heliograph_lock(uint32_t thread, SELF) {
    library_lock(thread, self);
    __tsan_acquire(self);
}

SWIFT bool heliograph_try_lock(SELF) {
    bool locked = library_try_lock(self);
    if (locked) __tsan_acquire(self);
    return locked;
}

SWIFT void heliograph_unlock(SELF) {
    __tsan_release(self);
    library_unlock(self);
}
