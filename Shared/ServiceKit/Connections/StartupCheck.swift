import Logging
import ServiceLifecycle

/// A readiness condition that holds once a check has passed: something outside that must be as this build expects it.
///
/// The check is repeated, ever less often, until it passes; the process lives meanwhile and says why it is not ready.
/// Stopping and starting over would try no better.
struct StartupCheck: Service {
    private static let pauses: [Duration] = [.milliseconds(200), .milliseconds(500), .seconds(1), .seconds(2)]
    private static let longestPause: Duration = .seconds(5)

    private let name: String
    private let condition: Readiness.Condition
    private let logger: Logger
    private let check: @Sendable () async throws -> String?

    /// - Parameter check: the reason why it does not hold, or `nil`; an error it throws is a reason too.
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
        var told: String?
        while let reason = await reason() {
            condition.set(.waiting(reason))
            if reason != told {
                logger.warning(
                    "Not ready", metadata: [LogKey.condition: "\(name)", LogKey.reason: "\(reason)"])
                told = reason
            }
            let pause = attempt < Self.pauses.count ? Self.pauses[attempt] : Self.longestPause
            attempt += 1
            // Cancelled: shutting down.
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
