import Logging
import ServiceKit
import ServiceLifecycle

/// A readiness condition that holds once a check of an external dependency has passed.
///
/// Repeats the check with growing pauses until it passes. Meanwhile the process runs and readiness reports the reason.
/// The process does not exit, because a restart would not repair the dependency.
struct StartupCheck: Service {
    private static let pauses: [Duration] = [.milliseconds(200), .milliseconds(500), .seconds(1), .seconds(2)]
    private static let longestPause: Duration = .seconds(5)

    private let name: String
    private let condition: Readiness.Condition
    private let logger: Logger
    private let check: @Sendable () async throws -> String?

    /// - Parameters:
    ///   - name: The name of the condition in readiness reports.
    ///   - waiting: The reported reason until the first check ends.
    ///   - check: Returns the reason for which the condition does not hold, or `nil` if it holds. An error counts as a
    ///     reason.
    init(
        condition name: String, readiness: Readiness, logger: Logger, waiting: String,
        check: @escaping @Sendable () async throws -> String?
    ) {
        self.name = name
        self.condition = readiness.condition(name, .waiting(waiting))
        self.logger = logger
        self.check = check
    }

    func run() async throws {
        await cancelWhenGracefulShutdown { await repeatUntilPassed() }
        // A service that returned would end its service group.
        try await gracefulShutdown()
    }

    private func repeatUntilPassed() async {
        var attempt = 0
        var lastReason: String?
        while let reason = await failureReason() {
            condition.set(.waiting(reason))
            if reason != lastReason {
                logger.warning(
                    "Not ready", metadata: [LogKey.condition: "\(name)", LogKey.reason: "\(reason)"])
                lastReason = reason
            }
            let pause = attempt < Self.pauses.count ? Self.pauses[attempt] : Self.longestPause
            attempt += 1
            // A cancelled sleep means shutdown.
            guard (try? await Task.sleep(for: pause)) != nil else { return }
        }
        condition.set(.holds)
        logger.info("Verified", metadata: [LogKey.condition: "\(name)"])
    }

    private func failureReason() async -> String? {
        do {
            return try await check()
        } catch {
            return "\(error)"
        }
    }
}
