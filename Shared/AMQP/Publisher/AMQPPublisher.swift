package import Logging
internal import ServiceLifecycle

/// Publishes on a connection and a thread of its own.
///
/// Every message is mandatory and confirmed. Confirms are pipelined within the window. After a connection loss the
/// unconfirmed messages are published again with the same message id, so one loss causes at most one window of
/// duplicates. A channel that stops confirming is replaced in the same way (``ConfirmWatch``).
///
/// You can call ``publish(_:)`` from any task, also before ``run()``.
package final class AMQPPublisher: Service, Sendable {
    private let configuration: AMQPConfiguration
    private let window: AMQPPublishWindow
    private let logger: Logger
    private let control: ConnectionControl
    private let jobQueue = PublishJobQueue()

    package convenience init(configuration: AMQPConfiguration, window: AMQPPublishWindow = .init(), logger: Logger) {
        self.init(configuration: configuration, window: window, control: ConnectionControl(), logger: logger)
    }

    init(
        configuration: AMQPConfiguration, window: AMQPPublishWindow = .init(), control: ConnectionControl,
        logger: Logger
    ) {
        self.control = control
        self.configuration = configuration
        self.window = window
        self.logger = logger
    }

    package var state: AMQPConnectionState { control.state }

    /// Keeps a connection open until shutdown. Call it once.
    ///
    /// Graceful shutdown first waits up to `timeouts.drain` for the confirms of all messages; cancellation does not
    /// wait. The remaining callers get a `closed` error.
    ///
    /// - Throws: `configuration` when no descriptor or thread is available.
    package func run() async throws {
        let idPrefix = "hg-\(String(UInt64.random(in: .min ... .max), radix: 36))"
        let (jobQueue, control, window, watch) = (jobQueue, control, window, configuration.timeouts.confirms)
        do {
            try await ConnectionThread(configuration: configuration, name: "out", control: control, logger: logger).run
            { logger in
                PublisherRole(
                    jobQueue: jobQueue, control: control, logger: logger,
                    publishQueue: PublishQueue(limits: window, watch: watch, idPrefix: idPrefix))
            }
        } catch {
            // No thread serves the callers.
            for job in jobQueue.close() { job.fail(error) }
            throw error
        }
    }

    /// Publishes `messages` in order, and waits for the broker's answer to each.
    ///
    /// - Returns: One confirmation per message, in the same order. A message that the broker did not accept is a value
    ///   (`nacked`, `returned`), not an error.
    /// - Throws: `closed` when the publisher is shut down, `cancelled` when the task is cancelled. In both cases some
    ///   messages may have been published.
    package func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation] {
        guard !messages.isEmpty else { return [] }
        let slot = JobSlot()
        let (jobQueue, control) = (jobQueue, control)
        let result: Result<[AMQPConfirmation], AMQPError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let job = PublishJob(messages) { continuation.resume(returning: $0) }
                job.refuseUnencodable()
                guard jobQueue.add(job) else {
                    job.fail(AMQPError(.closed, operation: "publish", detail: "the publisher is shut down"))
                    return
                }
                control.wakeup.signal()
                slot.fill(job)
            }
        } onCancel: {
            slot.cancel()
        }
        return try result.get()
    }
}
