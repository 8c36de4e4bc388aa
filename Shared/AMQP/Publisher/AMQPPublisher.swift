package import Logging
internal import ServiceLifecycle

/// Publishes, on a connection and a thread of its own.
///
/// Every message is mandatory and confirmed, and as persistent as its properties say. Confirms are pipelined through
/// the window. What is unconfirmed when the connection breaks is published again on the next one, with the same message
/// id, so duplicates are at most one window.
///
/// ``publish(_:)`` may be called from any task, before ``run()`` too: it then waits for it.
package final class AMQPPublisher: Service, Sendable {
    private let configuration: AMQPConfiguration
    private let window: AMQPPublishWindow
    private let logger: Logger
    private let link: Link
    private let inbox = PublisherInbox()

    package convenience init(configuration: AMQPConfiguration, window: AMQPPublishWindow = .init(), logger: Logger) {
        self.init(configuration: configuration, window: window, link: Link(), logger: logger)
    }

    init(configuration: AMQPConfiguration, window: AMQPPublishWindow = .init(), link: Link, logger: Logger) {
        self.link = link
        self.configuration = configuration
        self.window = window
        self.logger = logger
    }

    package var state: AMQPConnectionState { link.state }

    /// Keeps a connection open until shutdown.
    ///
    /// Graceful shutdown first flushes everything handed over, for at most the configuration's `timeouts.drain`;
    /// cancellation does not wait. Whoever still waits for a confirmation then gets a `closed` error. Runs once.
    ///
    /// - Throws: `configuration` when the system has no descriptor or thread left.
    package func run() async throws {
        let idPrefix = "hg-\(String(UInt64.random(in: .min ... .max), radix: 36))"
        let (inbox, link, window) = (inbox, link, window)
        do {
            try await Owner(configuration: configuration, name: "out", link: link, logger: logger).run { logger in
                PublisherRole(
                    inbox: inbox, link: link, logger: logger, outbox: Outbox(limits: window, idPrefix: idPrefix))
            }
        } catch {
            // No thread will answer the callers.
            for job in inbox.close() { job.fail(error) }
            throw error
        }
    }

    /// Publishes all `messages`, in order, and waits until the broker has answered for each.
    ///
    /// - Returns: One confirmation for each message, in the same order. A message the broker has not taken is a value
    ///   (`nacked`, `returned`), never an error.
    /// - Throws: `closed` when the publisher is or gets shut down, `cancelled` when the task is cancelled. In both
    ///   cases any of the messages may have been published.
    package func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation] {
        guard !messages.isEmpty else { return [] }
        let slot = JobSlot()
        let (inbox, link) = (inbox, link)
        let result: Result<[AMQPConfirmation], AMQPError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let job = PublishJob(messages) { continuation.resume(returning: $0) }
                job.refuseUnencodable()
                guard inbox.add(job) else {
                    job.fail(AMQPError(.closed, operation: "publish", detail: "the publisher is shut down"))
                    return
                }
                link.wakeup.signal()
                slot.fill(job)
            }
        } onCancel: {
            slot.cancel()
        }
        return try result.get()
    }
}
