import Logging
import ServiceKit
import ServiceLifecycle

/// A readiness condition that holds once a check of an external dependency has passed.
///
/// Repeats the check with growing pauses until it passes. The process keeps running and reports the reason; a restart
/// would not help.
struct StartupCheck: Service {
    private static let pauses: [Duration] = [.milliseconds(200), .milliseconds(500), .seconds(1), .seconds(2)]
    private static let longestPause: Duration = .seconds(5)

    private let name: String
    private let condition: Readiness.Condition
    private let logger: Logger
    private let check: @Sendable () async throws -> String?

    /// - Parameter check: returns the reason for which the condition does not hold, or `nil`. An error is a reason too.
    init(
        condition name: String, readiness: Readiness, logger: Logger, waiting: String,
        check: @escaping @Sendable () async throws -> String?
    ) {
        self.name = name
        self.condition = readiness.condition(name, waiting: waiting)
        self.logger = logger
        self.check = check
    }

    func run() async throws {
        await cancelWhenGracefulShutdown { await repeatUntilItHolds() }
        try await gracefulShutdown()
    }

    private func repeatUntilItHolds() async {
        var attempt = 0
        var lastReason: String?
        while let reason = await reason() {
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

    private func reason() async -> String? {
        do {
            return try await check()
        } catch {
            return "\(error)"
        }
    }
}
