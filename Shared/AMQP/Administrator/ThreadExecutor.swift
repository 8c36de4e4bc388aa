internal import DequeModule
internal import Synchronization

/// Runs an actor on a thread of its own, with a stack large enough for what the library decodes.
///
/// The thread ends when the executor is gone, which is when its actor is: no job can be left behind.
final class ThreadExecutor: SerialExecutor {
    /// Shared with the thread, which must not keep the executor alive.
    private final class Jobs: Sendable {
        private struct Contents: ~Copyable {
            var queue: Deque<UnownedJob> = []
            var isEnded = false
        }

        private let contents = Mutex(Contents())
        private let wakeup = Wakeup()

        func add(_ job: UnownedJob) {
            contents.withLock { $0.queue.append(job) }
            wakeup.signal()
        }

        func end() {
            contents.withLock { $0.isEnded = true }
            wakeup.signal()
        }

        /// The next job; nil when there will be none.
        func next() -> UnownedJob? {
            while true {
                wakeup.clear()
                let (job, isEnded) = contents.withLock { ($0.queue.popFirst(), $0.isEnded) }
                if let job { return job }
                if isEnded { return nil }
                wakeup.wait(timeout: .seconds(60))
            }
        }
    }

    private let jobs = Jobs()

    init(_ name: String) {
        let jobs = jobs
        // Not retained: while a job runs, its actor is alive, and the actor keeps the executor.
        let executor = UnownedSerialExecutor(ordinary: self)
        IOThread.start(name) {
            while let job = jobs.next() { job.runSynchronously(on: executor) }
        }
    }

    deinit { jobs.end() }

    func enqueue(_ job: consuming ExecutorJob) { jobs.add(UnownedJob(job)) }
}
