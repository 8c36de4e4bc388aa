import FoundationEssentials
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Feedback
@testable import FeedbackStore

/// Tests the retention of evidence. Undecided evidence is never deleted.
@Suite(.timeLimit(.minutes(3))) struct RetentionTests {
    @Test func `only decided evidence is deleted, by the time of its decision`() async throws {
        try await FeedbackFixture.with { feedback in
            // One piece of evidence with each decision, all of the same age.
            let decisions = ["stale", "waiting", "kept", "quarantined", "discarded", "approved", "published"]
            for (number, decision) in decisions.enumerated() {
                let gone = Outcome.Answer.unregistered(since: nil, reason: "Unregistered")
                try await feedback.evidence.record([Batches.batch(gone, devices: [number], answered: 100)])
                try await feedback.pool.execute(
                    """
                    UPDATE feedback.evidence SET decision = \(decision) WHERE device_id = \(Batches.device(number))
                    """)
            }
            // An operator decided about one of them later.
            let later = Timestamp.start + .seconds(3600)
            try await feedback.pool.execute(
                "UPDATE feedback.evidence SET decided_at = \(later.date) WHERE decision = 'discarded'")
            let all = Dictionary(uniqueKeysWithValues: decisions.map { ($0, 1) })
            #expect(try await feedback.evaluation.deleteEvidence(before: .start) == false)
            #expect(try await feedback.decisions() == all)
            _ = try await feedback.evaluation.deleteEvidence(before: .start + .milliseconds(1))
            #expect(
                try await feedback.decisions() == ["waiting": 1, "quarantined": 1, "approved": 1, "discarded": 1])
            _ = try await feedback.evaluation.deleteEvidence(before: later + .milliseconds(1))
            #expect(try await feedback.decisions() == ["waiting": 1, "quarantined": 1, "approved": 1])
        }
    }

    @Test func `the service's database role may delete evidence`() async throws {
        try await FeedbackFixture.with { feedback in
            let may = try await feedback.pool.query(
                "SELECT has_table_privilege('heliograph_feedback', 'feedback.evidence', 'DELETE')"
            ).single(Bool.self)
            #expect(may)
        }
    }

    @Test func `old evidence is found by an index among many newer rows`() async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.pool.execute(
                """
                INSERT INTO feedback.evidence
                    (notification_id, device_id, app, provider, environment, finding, reason, observed_at, decided_at)
                SELECT gen_random_uuid(), gen_random_uuid(), 'family-portal', 'apns', 'production', 'gone', 'x',
                    now() - n * interval '1 second', now() - n * interval '1 second'
                FROM generate_series(1, 20000) AS n
                """)
            try await feedback.pool.execute("ANALYZE feedback.evidence")
            let plan = try await feedback.pool.query(
                """
                EXPLAIN SELECT notification_id FROM feedback.evidence
                WHERE decision IN ('stale', 'kept', 'discarded', 'published')
                    AND coalesce(decided_at, observed_at) < now() - interval '180 days'
                ORDER BY coalesce(decided_at, observed_at) LIMIT 500
                """)
            var lines: [String] = []
            for row in plan { lines.append(try row.decode(String.self, at: "QUERY PLAN")) }
            #expect(lines.contains { $0.contains("evidence_judged") }, "\(lines)")
        }
    }
}
