internal import Dispatch

/// Runs one connection's jobs, one at a time, on a thread that may block.
///
/// libpq's calls wait; waiting on a thread of the cooperative pool would hold up the whole process. A serial dispatch
/// queue has a thread of its own whenever it has work, and none when it is idle.
final class ConnectionExecutor: SerialExecutor {
    private let queue: DispatchQueue

    init(label: String) { queue = DispatchQueue(label: label) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
