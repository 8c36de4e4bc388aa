import Foundation
import Postgres
import PushProtocol
import Synchronization
import TestSupport

@testable import Feedback
@testable import FeedbackStore

/// Feedback's stores on a database of the test's own, with a clock that the test advances.
struct FeedbackFixture {
    final class Clock: Sendable {
        private let moment = Mutex(Timestamp.start)
        var now: Timestamp { moment.withLock { $0 } }
        func advance(by duration: Duration) { moment.withLock { $0 = $0 + duration } }
    }

    let pool: PostgresPool
    let clock: Clock
    let evidence: EvidenceStore
    let evaluation: EvaluationStore

    /// - Parameter settlingTime: Two minutes by default, as in production.
    static func with<R: Sendable>(
        settlingTime: Duration = .seconds(120), guardRule: GuardRule = GuardRule(),
        suspicionRule: SuspicionRule = SuspicionRule(), _ body: (FeedbackFixture) async throws -> R
    ) async throws -> R {
        try await TestSchema.feedback.withPool { pool in
            let clock = Clock()
            return try await body(
                FeedbackFixture(
                    pool: pool, clock: clock,
                    evidence: EvidenceStore(pool, settlingTime: settlingTime, now: { clock.now }),
                    evaluation: EvaluationStore(pool, guardRule: guardRule, suspicionRule: suspicionRule)))
        }
    }

    /// Evaluates a route now; `nil` if another transaction has locked it.
    @discardableResult
    func evaluate(_ route: FeedbackRoute = Batches.route) async throws -> RouteReport? {
        try await evaluation.evaluate(route, now: clock.now)
    }

    /// The number of pieces of evidence by decision.
    func decisions() async throws -> [String: Int] {
        let rows = try await pool.query("SELECT decision, count(*) AS n FROM feedback.evidence GROUP BY decision")
        var counts: [String: Int] = [:]
        for row in rows {
            counts[try row.decode(String.self, at: "decision")] = Int(try row.decode(Int64.self, at: "n"))
        }
        return counts
    }

    /// The distinct reasons of quarantined evidence.
    func quarantineReasons() async throws -> Set<String> {
        let rows = try await pool.query("SELECT DISTINCT detail FROM feedback.evidence WHERE decision = 'quarantined'")
        var quarantineReasons: Set<String> = []
        for row in rows { quarantineReasons.insert(try row.decode(String.self, at: "detail")) }
        return quarantineReasons
    }
}
