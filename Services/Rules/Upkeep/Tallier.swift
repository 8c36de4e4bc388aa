import Logging
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Counts what came of each rule, hour by hour. Any number of processes may run it. Runs until graceful shutdown.
struct Tallier: Service {
    /// How often it looks which hours are due.
    static let pace = Duration.seconds(60)

    let store: TallyStore
    var now: @Sendable () -> Timestamp = { .now }
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    try await store.count(now: now())
                } catch {
                    logger.debug("What came of the rules cannot be counted now", metadata: [LogKey.error: "\(error)"])
                }
                // Cancelled: shutting down.
                guard (try? await Task.sleep(for: Self.pace)) != nil else { return }
            }
        }
    }
}
