import Dispatch

/// A task executor of its own, which knows what runs on it.
package final class MarkedExecutor: TaskExecutor {
    private static let mark = DispatchSpecificKey<Bool>()
    private let queue = DispatchQueue(label: "marked")

    package init() { queue.setSpecific(key: Self.mark, value: true) }

    /// Whether whoever asks runs on such a one.
    package static var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
