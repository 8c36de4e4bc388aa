internal import DequeModule
internal import Synchronization

/// Runs an actor on a dedicated thread, with a stack large enough for librabbitmq's recursive table decoding.
///
/// The thread ends when the executor is deallocated. Its actor is deallocated by then, so no job remains.
final class ThreadExecutor: SerialExecutor {
    /// Shared with the thread, which must not retain the executor.
    private final class Jobs: Sendable {
        private struct Contents: ~Copyable {
            var queue: Deque<UnownedJob> = []
            var isEnded = false
        }

        private let contents = Mutex(Contents())
        let wakeup: Wakeup

        init(_ resources: SystemResources) { wakeup = Wakeup(resources) }

        func add(_ job: UnownedJob) {
            contents.withLock { $0.queue.append(job) }
            wakeup.signal()
        }

        func end() {
            contents.withLock { $0.isEnded = true }
            wakeup.signal()
        }

        /// The next job; nil after the end.
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

    private let jobs: Jobs

    /// - Throws: `configuration` when no descriptor or thread is available.
    init(_ name: String, _ resources: SystemResources = .real) throws(AMQPError) {
        let jobs = Jobs(resources)
        self.jobs = jobs
        if let fault = jobs.wakeup.fault { throw fault }
        // Unretained: a running job retains its actor, and the actor retains the executor.
        let executor = UnownedSerialExecutor(ordinary: self)
        try IOThread.start(name, resources) {
            while let job = jobs.next() { job.runSynchronously(on: executor) }
        }
    }

    deinit { jobs.end() }

    func enqueue(_ job: consuming ExecutorJob) { jobs.add(UnownedJob(job)) }
}
