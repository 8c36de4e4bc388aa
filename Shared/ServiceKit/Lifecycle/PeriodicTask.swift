package import Logging
import ServiceLifecycle

/// Work repeated at an interval until graceful shutdown. A failed round is retried after the interval; logs the first
/// failure of a series, and the recovery.
package struct PeriodicTask: Sendable {
    /// The default pause between two rounds.
    private let interval: Duration
    private let failureMessage: String
    private let recoveryMessage: String
    private let logger: Logger
    private let sleep: @Sendable (Duration) async throws -> Void

    /// - Parameters:
    ///   - failureMessage: logged as a warning for the first failed round of a series.
    ///   - recoveryMessage: logged as a notice for the first successful round after it.
    ///   - sleep: throws when cancelled.
    package init(
        every interval: Duration, failureMessage: String, recoveryMessage: String, logger: Logger,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        self.interval = interval
        self.failureMessage = failureMessage
        self.recoveryMessage = recoveryMessage
        self.logger = logger
        self.sleep = sleep
    }

    /// Runs the rounds; returns at graceful shutdown or when cancelled.
    package func run(_ round: @escaping @Sendable () async throws -> Void) async {
        await runWithOwnPauses {
            try await round()
            return interval
        }
    }

    /// Runs rounds that return the pause before the next one; returns at graceful shutdown or when cancelled.
    package func runWithOwnPauses(_ round: @escaping @Sendable () async throws -> Duration) async {
        await cancelWhenGracefulShutdown {
            var isTroubled = false
            while !Task.isCancelled {
                var pause = interval
                do {
                    pause = try await round()
                    if isTroubled { logger.notice("\(recoveryMessage)") }
                    isTroubled = false
                } catch {
                    if !isTroubled, !Task.isCancelled {
                        logger.warning("\(failureMessage)", metadata: [LogKey.error: "\(error)"])
                    }
                    isTroubled = true
                }
                // A cancelled sleep means shutdown.
                guard (try? await sleep(pause)) != nil else { return }
            }
        }
    }
}
