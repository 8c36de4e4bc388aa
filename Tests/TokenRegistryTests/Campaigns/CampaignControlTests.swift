import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// Campaigns in the registry's tables, read and controlled by an operator.
@Suite(.timeLimit(.minutes(2))) struct CampaignControlTests {
    private static let id = UUID(uuidString: "0c0c0c0c-0000-5000-8000-000000000001")!

    /// A campaign with a stored list and two ranges, one of them done, and an older one of another app.
    private func withCampaigns(_ body: (CampaignStore, PostgresPool) async throws -> Void) async throws {
        try await TestSchema.registry.withPool { pool in
            try await pool.execute(
                """
                INSERT INTO registry.campaign
                    (id, app, rule, notification, audience, state, estimate, rate, created_at, cut_off, finished_at)
                VALUES
                    (\(Self.id), 'family-portal', 'news', '', 'everyone', 'running', 1000, 50,
                        now() - interval '11 s', now() - interval '10 s', NULL),
                    (gen_random_uuid(), 'hide-and-seek', 'news', '', 'topic chat', 'done', 10, NULL,
                        now() - interval '1 day', now() - interval '1 day', now())
                """)
            try await pool.execute(
                """
                INSERT INTO registry.campaign_range
                    (campaign, number, lower, upper, position, users, devices, pushes, without, looked, done)
                VALUES (\(Self.id), 0, '', 'm', 'm', 200, 250, 2, 5, 250, true),
                    (\(Self.id), 1, 'm', NULL, 'n', 40, 50, 1, 0, 50, false)
                """)
            try await body(CampaignStore(pool), pool)
        }
    }

    @Test func `list filters, sorts by time and sums the ranges`() async throws {
        try await withCampaigns { store, _ in
            let all = try await store.summaries(app: nil, unfinished: false, limit: 10)
            #expect(all.map(\.state) == ["running", "done"])
            #expect(try await store.summaries(app: nil, unfinished: true, limit: 10).map(\.id) == [Self.id])
            #expect(try await store.summaries(app: AppID(rawValue: "hide-and-seek"), unfinished: true, limit: 10) == [])
            #expect(try await store.summaries(app: nil, unfinished: false, limit: 1).count == 1)
            let first = all[0]
            #expect([first.users, first.devices, first.pushes, first.without, first.looked] == [240, 300, 3, 5, 300])
            #expect(first.ranges == 2 && first.rangesDone == 1 && first.rate == 50 && first.estimate == 1000)
            #expect(first.begun.map { (10..<70).contains(first.now.timeIntervalSince($0)) } == true)
        }
    }

    @Test func `a range with a dead-lettered cursor is shown with its reason until it is done`() async throws {
        try await withCampaigns { store, pool in
            try await pool.execute(
                "UPDATE registry.campaign_range SET dead_at = now(), dead_reason = 'campaign-step-failed'")
            let campaign = try #require(try await store.summary(of: Self.id))
            // Range 0 is done.
            #expect(campaign.rangesDead == 1 && campaign.deadReasons == ["campaign-step-failed"])
            try await pool.execute("UPDATE registry.campaign_range SET dead_at = NULL, dead_reason = NULL")
            let revived = try #require(try await store.summary(of: Self.id))
            #expect(revived.rangesDead == 0 && revived.deadReasons.isEmpty)
        }
    }

    @Test func `pause, resume and cancel each take effect once`() async throws {
        try await withCampaigns { store, pool in
            let decisions: [(CampaignStore.CampaignAction, Bool, String)] = [
                (.resume, false, "running"), (.pause, true, "paused"), (.pause, false, "paused"),
                (.resume, true, "running"), (.pause, true, "paused"), (.cancel, true, "cancelled"),
                (.cancel, false, "cancelled"), (.resume, false, "cancelled"), (.pause, false, "cancelled"),
            ]
            for (decision, changed, state) in decisions {
                let hasChanged = try await store.apply(decision, to: Self.id)
                #expect(hasChanged == changed, "\(decision)")
                let now = try await store.summary(of: Self.id)
                #expect(now?.state == state)
            }
            let isKnown = try await store.apply(.cancel, to: UUID())
            #expect(!isKnown)
            let states = try await store.summaries(app: nil, unfinished: false, limit: 10).map(\.state)
            #expect(states == ["cancelled", "done"])
        }
    }
}
