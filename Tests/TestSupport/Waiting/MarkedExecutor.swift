import Dispatch

/// A task executor that detects whether the current code runs on it.
package final class MarkedExecutor: TaskExecutor {
    private static let mark = DispatchSpecificKey<Bool>()
    private let queue = DispatchQueue(label: "marked")

    package init() { queue.setSpecific(key: Self.mark, value: true) }

    /// Whether the calling code runs on a ``MarkedExecutor``.
    package static var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
