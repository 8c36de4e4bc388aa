import Logging
import Postgres
import ServiceLifecycle

/// Reads the database's durability settings at the start and every ten minutes. Risks are a warning in the log and a
/// degraded condition of `/health/ready`; the process is given work all the same.
struct DurabilityCheck: Service {
    static let condition = "database-durability"
    private static let pace: Duration = .seconds(600)
    /// After a try that failed: the database is away, which another condition says.
    private static let pauseAfterFailure: Duration = .seconds(2)

    private let pool: PostgresPool
    private let condition: Readiness.Condition
    private let logger: Logger

    init(pool: PostgresPool, readiness: Readiness, logger: Logger) {
        self.pool = pool
        self.logger = logger
        condition = readiness.condition(Self.condition, degraded: "the database's settings were not read yet")
    }

    func run() async throws {
        await cancelWhenGracefulShutdown { await readRepeatedly() }
        try await gracefulShutdown()
    }

    private func readRepeatedly() async {
        var told: [String] = []
        while !Task.isCancelled {
            let risks = try? await DatabaseDurability.read(pool).risks
            if let risks {
                condition.set(risks.isEmpty ? .holds : .degraded(risks.joined(separator: "; ")))
                for risk in risks where !told.contains(risk) {
                    logger.warning(
                        "Acknowledged events can be lost; see deploy/operations/postgres.md",
                        metadata: [LogKey.reason: "\(risk)"])
                }
                told = risks
            }
            // Cancelled: shutting down.
            guard (try? await Task.sleep(for: risks == nil ? Self.pauseAfterFailure : Self.pace)) != nil else { return }
        }
    }
}
