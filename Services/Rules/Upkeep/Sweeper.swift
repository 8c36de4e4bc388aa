import Logging
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Deletes what is kept only for words that may still come. Any number of processes may run it. Runs until graceful
/// shutdown.
struct Sweeper: Service {
    static let pace = Duration.seconds(600)
    /// Between two batches, so that deleting never takes more than its share.
    static let pause = Duration.milliseconds(200)

    let store: RemnantStore
    var now: @Sendable () -> Timestamp = { .now }
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                var isMore = false
                do {
                    isMore = try await store.sweep(now: now())
                } catch {
                    logger.debug("What is over cannot be deleted now", metadata: [LogKey.error: "\(error)"])
                }
                // Cancelled: shutting down.
                guard (try? await Task.sleep(for: isMore ? Self.pause : Self.pace)) != nil else { return }
            }
        }
    }
}
