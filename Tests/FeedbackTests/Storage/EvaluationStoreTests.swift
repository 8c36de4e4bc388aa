import FoundationEssentials
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Feedback
@testable import FeedbackStore

/// Tests the evaluation of evidence in Postgres, with a clock that the tests advance.
@Suite(.timeLimit(.minutes(3))) struct EvaluationStoreTests {
    static let gone = Outcome.Answer.unregistered(since: nil, reason: "Unregistered")

    @Test func `evidence is approved after the settling time, and not before`() async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([Batches.batch(Self.gone, devices: [1, 2], answered: 100)])
            try await feedback.evaluate()
            #expect(try await feedback.decisions() == ["waiting": 2])
            feedback.clock.advance(by: .seconds(120))
            #expect(try await feedback.evaluate()?.decided == ["approved": 2])
            #expect(try await feedback.decisions() == ["approved": 2])
        }
    }

    @Test func `a redelivery changes nothing, before or after the evaluation`() async throws {
        try await FeedbackFixture.with { feedback in
            let batch = Batches.batch(Self.gone, devices: [1], answered: 100)
            try await feedback.evidence.record([batch, batch])
            try await feedback.evidence.record([batch])
            feedback.clock.advance(by: .seconds(120))
            try await feedback.evaluate()
            try await feedback.evidence.record([batch])
            #expect(try await feedback.decisions() == ["approved": 1])
        }
    }

    @Test func `B04: stale evidence is stored and not evaluated`() async throws {
        try await FeedbackFixture.with { feedback in
            let since = Outcome.Answer.unregistered(since: Batches.registered + .seconds(-1), reason: "Unregistered")
            try await feedback.evidence.record([Batches.batch(since, devices: [1], answered: 100)])
            #expect(try await feedback.decisions() == ["stale": 1])
            #expect(try await feedback.evaluation.routes().routes.isEmpty)
        }
    }

    @Test func `B08: thirty bad tokens of a hundred answers, spread over a minute, are all quarantined`() async throws {
        try await FeedbackFixture.with { feedback in
            // One push every two seconds, with an evaluation after each.
            for device in 0..<30 {
                try await feedback.evidence.record([
                    Batches.batch(
                        Batches.badToken, devices: [device], notification: device, at: feedback.clock.now,
                        answered: 1 + device * 100 / 30, acceptedAt: feedback.clock.now)
                ])
                try await feedback.evaluate()
                feedback.clock.advance(by: .seconds(2))
            }
            feedback.clock.advance(by: .seconds(600))
            try await feedback.evaluate()
            #expect(try await feedback.decisions() == ["quarantined": 30])
            #expect(try await feedback.quarantineReasons() == ["storm"])
        }
    }

    @Test(arguments: [1, nil] as [Int?])
    func `S2: bad tokens of one user, or of new registrations, neither trip the guard nor are quarantined`(
        owner: Int?
    ) async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([
                Batches.batch(
                    Batches.badToken, devices: 0..<50, answered: 60, acceptedAt: .start, owner: { _ in owner })
            ])
            try await feedback.evaluate()
            feedback.clock.advance(by: .seconds(120))
            #expect(try await feedback.evaluate()?.guardAfter == .atRest)
            #expect(try await feedback.decisions() == ["approved": 50])
        }
    }

    @Test func `a rejected FID is kept, and approved as gone after a rejection a day later`() async throws {
        try await FeedbackFixture.with { feedback async throws in
            func refuse(_ notification: Int) async throws -> [String: Int] {
                try await feedback.evidence.record([
                    Batches.batch(
                        Self.gone, devices: [1], notification: notification, origin: .fcm, at: feedback.clock.now,
                        answered: 100, refusedFID: "UNREGISTERED")
                ])
                feedback.clock.advance(by: .seconds(120))
                try await feedback.evaluate(FeedbackRoute(app: Batches.app, origin: .fcm, environment: .production))
                return try await feedback.decisions()
            }
            #expect(try await refuse(1) == ["kept": 1])
            feedback.clock.advance(by: .seconds(86_400 - 300))
            #expect(try await refuse(2) == ["kept": 2])
            feedback.clock.advance(by: .seconds(300))
            #expect(try await refuse(3) == ["approved": 1, "kept": 2])
            // A rejection more than a week later counts as the first.
            feedback.clock.advance(by: .seconds(30 * 86_400))
            #expect(try await refuse(4) == ["approved": 1, "kept": 3])
        }
    }

    @Test func `a tripped guard quarantines all evidence of its route, and none of another`() async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([Batches.batch(Self.gone, devices: 0..<30, answered: 100)])
            let report = try #require(try await feedback.evaluate())
            #expect(report.guardBefore == .atRest)
            #expect(report.guardAfter == .tripped(since: .start, until: .start + .seconds(900)))
            #expect(report.spike == ObservedSpike(registrations: 30, refused: 30, answered: 100))
            #expect(report.decided == ["quarantined": 30])

            feedback.clock.advance(by: .seconds(300))
            let other = FeedbackRoute(app: Batches.other, origin: .apns, environment: .production)
            try await feedback.evidence.record([
                Batches.batch(
                    Self.gone, devices: [100], notification: 1, at: feedback.clock.now, answered: 1000),
                Batches.batch(
                    Self.gone, devices: [101], notification: 1, app: Batches.other, at: feedback.clock.now,
                    answered: 1000),
            ])
            #expect(try await feedback.evaluate()?.decided == ["quarantined": 1])
            feedback.clock.advance(by: .seconds(120))
            #expect(try await feedback.evaluate(other)?.decided == ["approved": 1])
            #expect(try await feedback.evaluation.quarantined() == [Batches.app: 31])
        }
    }

    @Test func `a guard resets after the hold time, and quarantined evidence stays`() async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([Batches.batch(Self.gone, devices: 0..<30, answered: 100)])
            try await feedback.evaluate()
            feedback.clock.advance(by: .seconds(899))
            #expect(try await feedback.evaluate()?.guardAfter != .atRest)
            feedback.clock.advance(by: .seconds(1))
            #expect(try await feedback.evaluation.routes().routes == [Batches.route])
            #expect(try await feedback.evaluate()?.guardAfter == .atRest)
            #expect(try await feedback.evaluation.routes().routes.isEmpty)
            try await feedback.evidence.record([
                Batches.batch(Self.gone, devices: [99], notification: 1, at: feedback.clock.now, answered: 1000)
            ])
            feedback.clock.advance(by: .seconds(120))
            #expect(try await feedback.evaluate()?.decided == ["approved": 1])
            #expect(try await feedback.decisions() == ["quarantined": 30, "approved": 1])
        }
    }

    @Test(arguments: ["discarded", "approved"])
    func `evidence that an operator decided about does not trip the guard`(decision: String) async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([Batches.batch(Self.gone, devices: 0..<30, answered: 100)])
            try await feedback.evaluate()
            // The same changes as `pushctl feedback quarantine release|discard --all`.
            try await feedback.pool.execute("UPDATE feedback.evidence SET decision = \(decision)")
            try await feedback.pool.execute("UPDATE feedback.guard SET tripped_at = NULL, held_until = NULL")
            try await feedback.evidence.record([
                Batches.batch(Self.gone, devices: [99], notification: 1, answered: 101)
            ])
            #expect(try await feedback.evaluate()?.guardAfter == .atRest)
            try await feedback.evidence.record([
                Batches.batch(Self.gone, devices: 200..<230, notification: 2, answered: 131)
            ])
            #expect(try await feedback.evaluate()?.guardAfter != .atRest)
        }
    }

    @Test func `thirty rejections of one registration are no spike`() async throws {
        try await FeedbackFixture.with { feedback in
            for notification in 0..<30 {
                try await feedback.evidence.record([
                    Batches.batch(Self.gone, devices: [1], notification: notification, answered: 40)
                ])
            }
            feedback.clock.advance(by: .seconds(120))
            #expect(try await feedback.evaluate()?.decided == ["approved": 30])
        }
    }

    @Test func `a spike is detected although each registration gets many pushes`() async throws {
        try await FeedbackFixture.with { feedback in
            // 22 of 110 registrations are rejected, with eight pushes to each in two minutes.
            for notification in 0..<8 {
                try await feedback.evidence.record([
                    Batches.batch(
                        Batches.badToken, devices: 0..<22, notification: notification,
                        at: .start + .seconds(notification * 15), answered: 110 * (notification % 4 + 1))
                ])
            }
            let report = try #require(try await feedback.evaluate())
            #expect(report.spike == ObservedSpike(registrations: 22, refused: 176, answered: 880))
            #expect(report.decided == ["quarantined": 176])
        }
    }

    @Test func `a route's normal share of rejections is no spike`() async throws {
        try await FeedbackFixture.with { feedback in
            // An hour with a normal share of 4 %.
            for minute in 0..<30 {
                try await feedback.evidence.record([
                    Batches.batch(
                        Self.gone, devices: (minute * 4)..<(minute * 4 + 4), notification: minute,
                        at: feedback.clock.now, answered: 100)
                ])
                feedback.clock.advance(by: .seconds(120))
                try await feedback.evaluate()
            }
            #expect(try await feedback.decisions() == ["approved": 120])
            try await feedback.evidence.record([
                Batches.batch(Self.gone, devices: 1000..<1030, notification: 99, at: feedback.clock.now, answered: 300)
            ])
            feedback.clock.advance(by: .seconds(120))
            #expect(try await feedback.evaluate()?.guardAfter == .atRest)
            try await feedback.evidence.record([
                Batches.batch(Self.gone, devices: 2000..<2060, notification: 98, at: feedback.clock.now, answered: 300)
            ])
            #expect(try await feedback.evaluate()?.guardAfter != .atRest)
        }
    }

    @Test(arguments: [true, false])
    func `a spike that an operator released does not raise the normal share`(wasReleased: Bool) async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([Batches.batch(Self.gone, devices: 0..<300, answered: 1000)])
            if wasReleased { try await feedback.evaluate() }
            // The same changes as `pushctl feedback quarantine release --all`; or evidence that never was quarantined.
            try await feedback.pool.execute("UPDATE feedback.evidence SET decision = 'published'")
            try await feedback.pool.execute("UPDATE feedback.guard SET tripped_at = NULL, held_until = NULL")
            feedback.clock.advance(by: .seconds(600))
            try await feedback.evidence.record([
                Batches.batch(
                    Self.gone, devices: 1000..<1030, notification: 1, at: feedback.clock.now, answered: 100)
            ])
            let isTripped = try await feedback.evaluate()?.guardAfter != .atRest
            #expect(isTripped == wasReleased)
        }
    }

    @Test func `suspect rejections are decided by the route's health and by their number`() async throws {
        try await FeedbackFixture.with { feedback in
            let unclear = Outcome.Answer.rejected(reason: "INVALID_ARGUMENT", suspectToken: true)
            try await feedback.evidence.record([
                Batches.batch(Batches.badToken, devices: [1], notification: 1, answered: 100),
                Batches.batch(unclear, devices: [2], notification: 2, answered: 100),
            ])
            feedback.clock.advance(by: .seconds(120))
            try await feedback.evaluate()
            #expect(try await feedback.decisions() == ["quarantined": 1, "kept": 1])
            #expect(try await feedback.quarantineReasons() == ["lane-silent"])

            for notification in 3...4 {
                try await feedback.evidence.record([
                    Batches.batch(
                        unclear, devices: [2], notification: notification, at: feedback.clock.now, answered: 100,
                        acceptedAt: feedback.clock.now)
                ])
            }
            feedback.clock.advance(by: .seconds(120))
            try await feedback.evaluate()
            #expect(try await feedback.decisions() == ["quarantined": 3, "kept": 1])
            #expect(try await feedback.quarantineReasons() == ["lane-silent", "reason-unclear"])
        }
    }

    @Test func `approved evidence is claimed once, and again after the lease`() async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([Batches.batch(Self.gone, devices: [1, 2], answered: 100)])
            feedback.clock.advance(by: .seconds(120))
            try await feedback.evaluate()
            let claimed = try await feedback.evaluation.claim(now: feedback.clock.now, lease: .seconds(30)).readable
            #expect(claimed.count == 2)
            #expect(claimed.first?.trace.correlation == "event-1")
            #expect(claimed.first?.trace.traceparent != nil)
            #expect(claimed.first?.notRegisteredSince == Batches.registered)
            #expect(try await feedback.evaluation.claim(now: feedback.clock.now, lease: .seconds(30)).readable.isEmpty)
            feedback.clock.advance(by: .seconds(30))
            let again = try await feedback.evaluation.claim(now: feedback.clock.now, lease: .seconds(30)).readable
            #expect(again.commands == claimed.commands)
            try await feedback.evaluation.markPublished(again, now: feedback.clock.now)
            feedback.clock.advance(by: .seconds(3600))
            #expect(try await feedback.evaluation.claim(now: feedback.clock.now, lease: .seconds(30)).readable.isEmpty)
            #expect(try await feedback.decisions() == ["published": 2])
        }
    }

    @Test func `stored times keep their milliseconds`() async throws {
        try await FeedbackFixture.with { feedback in
            for offset in 0..<200 {
                try await feedback.evidence.record([
                    Batches.batch(
                        Self.gone, devices: [offset], notification: offset,
                        registeredAt: Batches.registered + .milliseconds(offset), answered: 100_000)
                ])
            }
            feedback.clock.advance(by: .seconds(120))
            try await feedback.evaluate()
            let claimed = try await feedback.evaluation.claim(now: feedback.clock.now, lease: .seconds(30)).readable
            let expected = (0..<200).map { Batches.registered + .milliseconds($0) }
            #expect(claimed.map(\.notRegisteredSince).sorted() == expected)
        }
    }

    @Test func `concurrent evaluations decide each piece once, and trip the guard once`() async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([Batches.batch(Self.gone, devices: 0..<200, answered: 400)])
            let reports = try await withThrowingTaskGroup(of: RouteReport?.self) { group in
                for _ in 0..<8 { group.addTask { try await feedback.evaluate() } }
                var reports: [RouteReport] = []
                for try await report in group { if let report { reports.append(report) } }
                return reports
            }
            #expect(reports.filter { $0.guardBefore == .atRest && $0.guardAfter != .atRest }.count == 1)
            #expect(reports.compactMap { $0.decided["quarantined"] }.reduce(0, +) == 200)
            #expect(try await feedback.decisions() == ["quarantined": 200])
        }
    }

    @Test func `the largest report of a minute counts, and old route health is deleted`() async throws {
        try await FeedbackFixture.with { feedback in
            for answered in [10, 300, 20] {
                try await feedback.evidence.record([
                    Batches.batch(Self.gone, devices: [answered], notification: answered, answered: answered)
                ])
            }
            let sum = try await feedback.pool.query(
                "SELECT sum(answered)::bigint FROM feedback.pulse"
            ).single(Int64.self)
            #expect(sum == 300)
            try await feedback.evaluation.deleteRouteHealth(before: .start)
            #expect(try await feedback.pool.query("SELECT count(*) FROM feedback.pulse").single(Int64.self) == 1)
            try await feedback.evaluation.deleteRouteHealth(before: .start + .seconds(60))
            #expect(try await feedback.pool.query("SELECT count(*) FROM feedback.pulse").single(Int64.self) == 0)
        }
    }

    @Test func `evidence of an older release counts as published`() async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.pool.execute(
                """
                INSERT INTO feedback.evidence
                    (notification_id, device_id, app, provider, environment, finding, reason, observed_at)
                VALUES (gen_random_uuid(), gen_random_uuid(), 'family-portal', 'apns', 'production', 'gone', 'x', now())
                """)
            #expect(try await feedback.decisions() == ["published": 1])
            #expect(try await feedback.evaluation.routes().routes.isEmpty)
        }
    }
}
