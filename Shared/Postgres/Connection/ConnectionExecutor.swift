internal import Dispatch

/// Runs one connection's jobs, one at a time, on a thread that may block.
///
/// libpq's calls block, which threads of the cooperative pool must not do. A serial dispatch queue uses a thread of its
/// own while it has work, and none while it is idle.
final class ConnectionExecutor: SerialExecutor {
    private let queue: DispatchQueue

    init(label: String) { queue = DispatchQueue(label: label) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
