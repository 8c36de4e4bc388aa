import AMQP
import Logging
import PushProtocol
import PushSending
import ServiceLifecycle

/// Counts the processes that share each project's quota, by the consumers of the project's queues. Senders thus need
/// no other coordination.
///
/// Polls over its own connection. While the broker is unavailable, the last count stays in use; nothing can be
/// consumed then.
struct QuotaPeerCounter: Service {
    /// The polling interval: the time until a new process is counted.
    static let interval = Duration.seconds(5)

    let quotas: ProjectQuotas
    let configuration: AMQPConfiguration
    let logger: Logger

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
                    logger.debug(
                        "Cannot count the senders that share a quota; keeping the last count",
                        metadata: ["error": "\(error)"])
                    // Only shutdown cancels this sleep.
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
