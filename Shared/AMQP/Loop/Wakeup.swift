internal import CRabbitMQ
internal import Glibc
internal import Synchronization

/// An eventfd that interrupts a thread's `poll`. Any thread may signal; several signals are one write.
final class Wakeup: Sendable {
    let descriptor: Int32
    private let isSignalled = Atomic(false)

    /// Why it cannot be used; `nil` when it can. Checked before a thread sleeps on it.
    let fault: AMQPError?

    init(_ resources: SystemResources = .real) {
        descriptor = resources.eventfd()
        fault = descriptor >= 0 ? nil : .noResources("an eventfd", errno, "raise the limit of open files (ulimit -n)")
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    func signal() {
        guard descriptor >= 0, !isSignalled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Resets the signal. Call it before you look for work, so that a signal in between is not lost.
    func clear() { _ = isSignalled.exchange(false, ordering: .acquiringAndReleasing) }

    /// Sleeps until signalled, until `other` is readable, or for `timeout`.
    ///
    /// Always reads the eventfd empty: a signal written after ``clear()`` would otherwise end every later sleep at
    /// once.
    func wait(orReadable other: Int32 = -1, timeout: Duration) {
        var descriptors = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: other, events: Int16(POLLIN), revents: 0),  // poll ignores a negative descriptor
        ]
        let (seconds, attoseconds) = timeout.components
        let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        _ = poll(&descriptors, 2, Int32(clamping: max(0, milliseconds)))
        if descriptors[0].revents != 0 {
            var count: UInt64 = 0
            _ = read(descriptor, &count, 8)
        }
    }
}
