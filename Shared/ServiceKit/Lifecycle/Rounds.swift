package import Logging
import ServiceLifecycle

/// Work that is done over and over until graceful shutdown: a round, a pause, the next round. A round that fails costs
/// nothing but the wait until the next; the first of several that fail is told, and so is the first that works again.
package struct Rounds: Sendable {
    /// Between two rounds, where the round does not say otherwise.
    private let pace: Duration
    private let trouble: String
    private let relief: String
    private let logger: Logger
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameters:
    ///   - trouble: What is told, as a warning, of the first round that fails.
    ///   - relief: What is told, as a notice, of the first that works after it.
    ///   - sleep: Throws when the wait is cancelled.
    package init(
        every pace: Duration, trouble: String, relief: String, logger: Logger,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        self.pace = pace
        self.trouble = trouble
        self.relief = relief
        self.logger = logger
        self.sleep = sleep
    }

    /// Returns at graceful shutdown, or when cancelled.
    package func run(_ round: @escaping @Sendable () async throws -> Void) async {
        await runPausing {
            try await round()
            return pace
        }
    }

    /// As above, with rounds that say how long to wait for the next.
    package func runPausing(_ round: @escaping @Sendable () async throws -> Duration) async {
        await cancelWhenGracefulShutdown {
            var isTroubled = false
            while !Task.isCancelled {
                var pause = pace
                do {
                    pause = try await round()
                    if isTroubled { logger.notice("\(relief)") }
                    isTroubled = false
                } catch {
                    if !isTroubled, !Task.isCancelled {
                        logger.warning("\(trouble)", metadata: [LogKey.error: "\(error)"])
                    }
                    isTroubled = true
                }
                // Cancelled: shutting down.
                guard (try? await sleep(pause)) != nil else { return }
            }
        }
    }
}
