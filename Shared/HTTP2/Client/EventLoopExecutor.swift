package import NIOCore
import DequeModule
import Synchronization

/// Runs tasks on an event loop's thread, so a task that awaits responses of a client on that loop never changes
/// threads.
///
/// Tasks must not block. The loop reads its sockets only between jobs, so ready tasks run for at most ``slice`` at a
/// time. Use one executor for each loop (``EventLoopExecutors``); several would each take a slice.
package final class EventLoopExecutor: TaskExecutor {
    private struct State {
        var ready: Deque<UnownedJob> = []
        /// Whether the loop has been asked to run the ready jobs.
        var isWakeUpPending = false
    }

    private static let slice = TimeAmount.milliseconds(2)
    /// The pause after a slice. A job scheduled without delay would run before the loop reads its sockets.
    private static let pause = TimeAmount.microseconds(100)

    package let eventLoop: any EventLoop
    private let state = Mutex(State())

    package init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = state.withLock { state in
            state.ready.append(job)
            defer { state.isWakeUpPending = true }
            return !state.isWakeUpPending
        }
        if isFirst { eventLoop.execute { self.run() } }
    }

    private func run() {
        let end = NIODeadline.now() + Self.slice
        while let job = next() {
            job.runSynchronously(on: asUnownedTaskExecutor())
            guard NIODeadline.now() < end else {
                eventLoop.scheduleTask(in: Self.pause) { self.run() }
                return
            }
        }
    }

    private func next() -> UnownedJob? {
        state.withLock { state in
            guard let job = state.ready.popFirst() else {
                state.isWakeUpPending = false
                return nil
            }
            return job
        }
    }
}

package struct EventLoopExecutors: Sendable {
    private let group: any EventLoopGroup
    private var executors: [ObjectIdentifier: EventLoopExecutor] = [:]

    package init(_ group: any EventLoopGroup) { self.group = group }

    /// Returns the executor of the group's next loop.
    package mutating func next() -> EventLoopExecutor {
        let eventLoop = group.next()
        let executor = executors[ObjectIdentifier(eventLoop)] ?? EventLoopExecutor(eventLoop)
        executors[ObjectIdentifier(eventLoop)] = executor
        return executor
    }
}
