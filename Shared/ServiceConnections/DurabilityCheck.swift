import Logging
import Postgres
import ServiceKit
import ServiceLifecycle

/// Checks the database's durability settings at the start and every ten minutes. Risks are logged as warnings and make
/// a condition of `/health/ready` degraded; the process stays ready.
struct DurabilityCheck: Service {
    static let condition = "database-durability"
    private static let interval: Duration = .seconds(600)
    /// The pause after a failed read. Another condition reports that the database is unreachable.
    private static let pauseAfterFailure: Duration = .seconds(2)

    private let pool: PostgresPool
    private let condition: Readiness.Condition
    private let logger: Logger

    init(pool: PostgresPool, readiness: Readiness, logger: Logger) {
        self.pool = pool
        self.logger = logger
        condition = readiness.condition(Self.condition, .degraded("the database's settings have not been read yet"))
    }

    func run() async throws {
        await cancelWhenGracefulShutdown { await readRepeatedly() }
        try await gracefulShutdown()
    }

    private func readRepeatedly() async {
        var reported: [String] = []
        while !Task.isCancelled {
            let risks = try? await DatabaseDurability.read(pool).risks
            if let risks {
                condition.set(risks.isEmpty ? .holds : .degraded(risks.joined(separator: "; ")))
                for risk in risks where !reported.contains(risk) {
                    logger.warning(
                        "Database settings can lose acknowledged events; see deploy/operations/postgres.md",
                        metadata: [LogKey.reason: "\(risk)"])
                }
                reported = risks
            }
            // A cancelled sleep means shutdown.
            let pause = risks == nil ? Self.pauseAfterFailure : Self.interval
            guard (try? await Task.sleep(for: pause)) != nil else { return }
        }
    }
}
