internal import Synchronization

/// Connects a task's cancellation with its publish job. The cancellation may come first.
final class JobSlot: Sendable {
    private enum Content {
        case empty
        case job(PublishJob)
        case cancelled
    }

    private let content = Mutex(Content.empty)

    func fill(_ job: PublishJob) {
        let isCancelled = content.withLock { content in
            switch content {
            case .cancelled: return true
            case .empty, .job:
                content = .job(job)
                return false
            }
        }
        if isCancelled { abandon(job) }
    }

    func cancel() {
        let job: PublishJob? = content.withLock { content in
            defer { content = .cancelled }
            if case .job(let job) = content { return job }
            return nil
        }
        if let job { abandon(job) }
    }

    private func abandon(_ job: PublishJob) {
        job.fail(AMQPError(.cancelled, operation: "publish", detail: "the task was cancelled"))
    }
}
