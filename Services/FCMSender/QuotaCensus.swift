import AMQP
import Logging
import PushProtocol
import PushSending
import ServiceLifecycle

/// Tells each project's quota how many processes share it: the broker knows, since every sender of a project consumes the
/// same queues. So nothing else has to be shared between them.
///
/// Asked every few seconds over a connection of its own. While the broker is away the last count holds; nothing can be
/// consumed then either.
struct QuotaCensus: Service {
    /// How long a new process may go unnoticed by the others.
    static let interval = Duration.seconds(5)

    let quotas: ProjectQuotas
    let configuration: AMQPConfiguration
    let logger: Logger

    /// Runs until graceful shutdown.
    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    try await AMQPAdministrator.with(configuration, logger: logger) { administrator in
                        while true {
                            try await count(administrator)
                            try await Task.sleep(for: Self.interval)
                        }
                    }
                } catch {
                    guard !Task.isCancelled else { return }
                    logger.debug("The senders cannot be counted", metadata: ["error": "\(error)"])
                    // Cut short by the shutdown only.
                    try? await Task.sleep(for: Self.interval)
                }
            }
        }
    }

    private func count(_ administrator: AMQPAdministrator) async throws {
        for share in quotas.all {
            var most = 0
            for queue in WorkQueue.pushes(.fcm, of: share.apps) {
                most = max(most, try await administrator.queueStatus(queue.name)?.consumers ?? 0)
            }
            share.quota.share(among: most)
        }
    }
}
