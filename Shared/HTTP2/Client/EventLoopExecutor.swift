import DequeModule
package import NIOCore
import Synchronization

/// Runs tasks on the thread of an event loop. Who sends with a client of that loop and awaits the answers there changes no
/// thread, and neither wakes the other.
///
/// What runs there must not block. A loop looks at its sockets once nobody asks it for more: so the tasks that are ready run one
/// after the other for ``slice``, and then let it. For that there is one executor of a loop (``EventLoopExecutors``).
package final class EventLoopExecutor: TaskExecutor {
    private struct State {
        var ready: Deque<UnownedJob> = []
        /// Whether the loop was asked to run what is ready.
        var isAwaited = false
    }

    private static let slice = TimeAmount.milliseconds(2)
    /// What is due at once would run before the sockets are looked at.
    private static let breath = TimeAmount.microseconds(100)

    package let eventLoop: any EventLoop
    private let state = Mutex(State())

    package init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = state.withLock { state in
            state.ready.append(job)
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
        if isFirst { eventLoop.execute { self.run() } }
    }

    private func run() {
        let end = NIODeadline.now() + Self.slice
        while let job = next() {
            job.runSynchronously(on: asUnownedTaskExecutor())
            guard NIODeadline.now() < end else {
                eventLoop.scheduleTask(in: Self.breath) { self.run() }
                return
            }
        }
    }

    private func next() -> UnownedJob? {
        state.withLock { state in
            guard let job = state.ready.popFirst() else {
                state.isAwaited = false
                return nil
            }
            return job
        }
    }
}

/// The executors of a group's loops, one of each.
package struct EventLoopExecutors {
    private let group: any EventLoopGroup
    private var executors: [ObjectIdentifier: EventLoopExecutor] = [:]

    package init(_ group: any EventLoopGroup) { self.group = group }

    /// That of the loop whose turn it is.
    package mutating func next() -> EventLoopExecutor {
        let eventLoop = group.next()
        let executor = executors[ObjectIdentifier(eventLoop)] ?? EventLoopExecutor(eventLoop)
        executors[ObjectIdentifier(eventLoop)] = executor
        return executor
    }
}
