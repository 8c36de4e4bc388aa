import FoundationEssentials
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Feedback
@testable import FeedbackStore

/// Tests spikes that senders report, in Postgres.
@Suite(.timeLimit(.minutes(3))) struct ReportedSpikeTests {
    private static let spike = RouteHealth.BadTokenSpike(since: .start + .seconds(-60), until: .start)

    private func suspicions(
        _ devices: Range<Int>, at: Timestamp, notification: Int = 1, app: AppID = Batches.app
    ) -> Outcomes {
        Batches.batch(
            Batches.badToken, devices: devices, notification: notification, app: app, at: at, answered: 1000,
            acceptedAt: at)
    }

    @Test func `a reported spike trips the guard once, even without waiting evidence`() async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([Batches.spikeReport(of: Self.spike)])
            #expect(try await feedback.evaluation.routes().routes == [Batches.route])
            let report = try #require(try await feedback.evaluate())
            #expect(report.guardAfter == .tripped(since: .start, until: .start + .seconds(900)))
            #expect(report.spike == nil)
            feedback.clock.advance(by: .seconds(60))
            #expect(try await feedback.evaluate()?.guardAfter == report.guardAfter)

            // A later report extends the spike.
            let longer = RouteHealth.BadTokenSpike(since: Self.spike.since, until: .start + .seconds(60))
            try await feedback.evidence.record([Batches.spikeReport(of: longer), Batches.spikeReport(of: Self.spike)])
            #expect(
                try await feedback.evaluate()?.guardAfter == .tripped(since: .start, until: .start + .seconds(960)))
            feedback.clock.advance(by: .seconds(900))
            #expect(try await feedback.evaluate()?.guardAfter == .atRest)
            #expect(try await feedback.evaluation.routes().routes.isEmpty)
        }
    }

    @Test func `only evidence from the time of the spike is quarantined, also when it arrives later`()
        async throws
    {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([Batches.spikeReport(of: Self.spike)])
            try await feedback.evaluate()
            // An operator reset the guard, or the hold time passed.
            try await feedback.pool.execute("UPDATE feedback.guard SET tripped_at = NULL, held_until = NULL")
            let other = FeedbackRoute(app: Batches.other, origin: .apns, environment: .production)
            try await feedback.evidence.record([
                suspicions(0..<10, at: Self.spike.since),
                suspicions(10..<19, at: Self.spike.until, notification: 2),
                suspicions(20..<22, at: Self.spike.since + .seconds(-1), notification: 3),
                suspicions(30..<33, at: Self.spike.until + .seconds(1), notification: 4),
                suspicions(40..<44, at: Self.spike.until, notification: 5, app: Batches.other),
            ])
            feedback.clock.advance(by: .seconds(120))
            #expect(try await feedback.evaluate()?.decided == ["quarantined": 19, "approved": 5])
            #expect(try await feedback.evaluate(other)?.decided == ["approved": 4])
            #expect(try await feedback.quarantineReasons() == ["storm"])
            #expect(try await feedback.evaluation.quarantined() == [Batches.app: 19])
        }
    }

    @Test func `a reported spike does not show the counts of an older spike`() async throws {
        try await FeedbackFixture.with { feedback in
            try await feedback.evidence.record([
                Batches.batch(Batches.badToken, devices: 0..<30, at: .start + .seconds(-7200), answered: 100)
            ])
            try await feedback.evaluate()
            try await feedback.evidence.record([Batches.spikeReport(of: Self.spike)])
            try await feedback.evaluate()
            func refused() async throws -> Int64? {
                try await feedback.pool.query("SELECT refused FROM feedback.guard").single(Int64?.self)
            }
            // The guard stayed tripped, so the counts stay.
            #expect(try await refused() == 30)
            feedback.clock.advance(by: .seconds(900))
            try await feedback.evaluate()
            try await feedback.evidence.record([
                Batches.spikeReport(of: RouteHealth.BadTokenSpike(since: .start, until: feedback.clock.now))
            ])
            #expect(try await feedback.evaluate()?.guardAfter != .atRest)
            #expect(try await refused() == nil)
        }
    }

    @Test func `the latest end of the reports about a minute counts, in any order`() async throws {
        try await FeedbackFixture.with { feedback in
            let words = [0, 30, 10].map { seconds in
                Batches.batch(
                    Batches.badToken, devices: [], answered: 100 - seconds,
                    spike: RouteHealth.BadTokenSpike(since: Self.spike.since, until: .start + .seconds(seconds)))
            }
            let silent = Batches.batch(Batches.badToken, devices: [], answered: 300)
            for batches in [[words[0], silent], [silent, words[1], words[2]], [silent]] {
                try await feedback.evidence.record(batches)
            }
            let told = try await feedback.pool.query(
                "SELECT storm_until FROM feedback.pulse WHERE answered = 300"
            ).single(Date.self)
            #expect(Timestamp(told) == .start + .seconds(30))
        }
    }
}
