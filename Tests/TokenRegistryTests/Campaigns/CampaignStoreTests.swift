import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// Claims of steps, and the end of campaigns.
@Suite(.timeLimit(.minutes(2))) struct CampaignStoreTests {
    typealias Fixture = StoreFixture
    typealias A = AudienceFixture

    private static func withCampaign(
        rate: Int? = nil, _ body: (CampaignStore, CampaignCursor, PostgresPool) async throws -> Void
    ) async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01")])
            let campaigns = CampaignStore(pool)
            let notification = A.notification(.everyone, rate: rate)
            let cursors = try await campaigns.open(notification, to: notification.audience!)
            try #require(cursors.count == 1)
            try await body(campaigns, cursors[0], pool)
        }
    }

    private static func state(_ pool: PostgresPool) async throws -> String {
        try await pool.query("SELECT state FROM registry.campaign").single(String.self)
    }

    @Test func `one copy of a cursor is granted, the others wait and become void after the step`() async throws {
        try await Self.withCampaign { store, cursor, _ in
            #expect(try await store.claim(cursor, redelivered: false) == .granted(upper: nil))
            #expect(try await store.claim(cursor, redelivered: false) == .later)
            // Redelivered, so its earlier consumer is gone.
            #expect(try await store.claim(cursor, redelivered: true) == .granted(upper: nil))
            let next = cursor.advanced(past: "a", by: .init(users: 1, devices: 2, pushes: 1, without: 0, looked: 3))
            #expect(try await store.claim(next, redelivered: false) == .granted(upper: nil))
            for redelivered in [false, true] {
                #expect(try await store.claim(cursor, redelivered: redelivered) == .void)
            }
            try await store.yield(next)
            #expect(try await store.claim(next, redelivered: false) == .granted(upper: nil))
        }
    }

    @Test func `of two redelivered copies, one is granted`() async throws {
        try await Self.withCampaign { store, cursor, pool in
            let notification = A.notification(.everyone)
            let other = try #require(try await store.open(notification, to: notification.audience!).first)
            #expect(try await store.claim(cursor, redelivered: false) == .granted(upper: nil))
            #expect(try await store.claim(other, redelivered: false) == .later)
            #expect(try await store.claim(other, redelivered: true) == .later)
            #expect(try await store.claim(cursor, redelivered: true) == .granted(upper: nil))
            // Only the granted copy releases the lease.
            try await store.yield(other)
            #expect(try await store.claim(other, redelivered: true) == .later)
            try await store.yield(cursor)
            #expect(try await store.claim(other, redelivered: false) == .granted(upper: nil))
            #expect(try await store.claim(cursor, redelivered: true) == .later)
            // The first step counts for both copies.
            let next = other.advanced(past: "a", by: .init())
            #expect(try await store.claim(next, redelivered: false) == .granted(upper: nil))
            #expect(try await store.claim(cursor, redelivered: true) == .void)
        }
    }

    @Test func `a cursor with extreme numbers does not crash a process`() async throws {
        try await Self.withCampaign { store, cursor, _ in
            var strange = cursor
            strange.step = .max
            strange.tally = CampaignTally(users: .max, devices: .min, pushes: .max, without: .max, looked: .max)
            let more = CampaignTally(users: 1, devices: -1, pushes: 1, without: 1, looked: 1)
            let next = strange.advanced(past: "a", by: more)
            #expect((next.step, next.tally.users, next.tally.devices) == (.max, .max, .min))
            let claim = try await store.claim(next, redelivered: false)
            #expect(claim == .granted(upper: nil))
        }
    }

    @Test func `of twenty claims of one cursor, one is granted`() async throws {
        try await Self.withCampaign { store, cursor, _ in
            let granted = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<20 {
                    group.addTask { try await store.claim(cursor, redelivered: false) == .granted(upper: nil) }
                }
                return try await group.reduce(into: 0) { if $1 { $0 += 1 } }
            }
            #expect(granted == 1)
        }
    }

    @Test func `a repeated opening starts no second time, and returns cursors only before the first step`()
        async throws
    {
        try await Self.withCampaign { store, cursor, pool in
            let notification = A.notification(.everyone)
            var again = cursor
            again.copy = 2
            #expect(try await store.open(notification, to: notification.audience!) == [again])
            _ = try await store.claim(cursor.advanced(past: "a", by: .init()), redelivered: false)
            #expect(try await store.open(notification, to: notification.audience!) == [])
            #expect(try await pool.query("SELECT count(*) FROM registry.campaign_range").single(Int.self) == 1)
        }
    }

    @Test func `a paused campaign waits, a resumed one continues, a cancelled one is void`() async throws {
        try await Self.withCampaign { store, cursor, pool in
            for (state, claim) in [
                ("paused", CampaignStore.CursorClaim.later), ("running", .granted(upper: nil)), ("cancelled", .void),
            ] {
                try await pool.execute(
                    """
                    UPDATE registry.campaign SET state = \(state),
                        finished_at = CASE WHEN \(state) = 'cancelled' THEN clock_timestamp() END
                    """)
                #expect(try await store.claim(cursor, redelivered: false) == claim, "\(state)")
            }
        }
    }

    @Test func `a campaign ends with its last range, and its list is deleted`() async throws {
        try await Fixture.withStore { _, pool in
            let store = CampaignStore(pool)
            let users = (0..<30_000).map { A.user("user-\($0)") }
            for part in 1...3 {
                let list = A.notification(
                    .users(Array(users[(part - 1) * 10_000..<part * 10_000]), part: part, of: 3), part: "\(part)")
                let cursors = try await store.open(list, to: list.audience!)
                #expect(cursors.count == (part == 3 ? CampaignStore.ranges : 0))
                for (index, cursor) in cursors.enumerated() {
                    #expect(try await store.finish(cursor) == (index == cursors.count - 1))
                    #expect(try await store.claim(cursor, redelivered: true) == .void)
                }
            }
            #expect(try await Self.state(pool) == "done")
            try await store.deleteEndedLists()
            #expect(try await pool.query("SELECT count(*) FROM registry.campaign_member").single(Int.self) == 0)
        }
    }

    @Test func `a list is deleted in steps, by several processes, from where an earlier one stopped`() async throws {
        try await Fixture.withStore { _, pool in
            let store = CampaignStore(pool)
            let list = A.notification(.users((0..<25_000).map { A.user("user-\($0)") }, part: 1, of: 1))
            _ = try await store.open(list, to: list.audience!)
            func count() async throws -> Int {
                try await pool.query("SELECT count(*) FROM registry.campaign_member").single(Int.self)
            }
            let end: String = try #require(
                try await pool.query(CampaignStore.end(ofList: A.campaign, after: "")).first?.decode(at: 0))
            try await pool.execute(CampaignStore.listDeletion(of: A.campaign, after: "", upTo: end))
            #expect(try await count() == 15_000)
            // An unfinished campaign keeps its list.
            try await store.deleteEndedLists()
            #expect(try await count() == 15_000)
            try await pool.execute("UPDATE registry.campaign SET state = 'cancelled', finished_at = now()")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<3 { group.addTask { try await store.deleteEndedLists() } }
                try await group.waitForAll()
            }
            #expect(try await count() == 0)
            #expect(try await pool.query("SELECT count(*) FROM registry.campaign_part").single(Int.self) == 0)
        }
    }

    @Test func `a user erased while a list arrives is in no sample of it`() async throws {
        try await Fixture.withStore { registrations, pool in
            let store = CampaignStore(pool)
            let users = (0..<300).map { A.user("user-\($0)") }
            let first = A.notification(.users(users, part: 1, of: 2), part: "1")
            _ = try await store.open(first, to: first.audience!)
            func sample() async throws -> [String] {
                try await pool.query("SELECT sample FROM registry.campaign_part ORDER BY number").first?.decode(at: 0)
                    ?? []
            }
            let before = try await sample()
            #expect(before.count == 3)
            try await registrations.erase(Fixture.user(before[1]))
            #expect(try await sample() == [before[0], before[2]])
            let second = A.notification(.users(users, part: 2, of: 2), part: "2")
            _ = try await store.open(second, to: second.audience!)
            #expect(try await sample().isEmpty)
        }
    }

    @Test func `ranges split an audience evenly and completely`() async throws {
        try await Fixture.withStore { _, pool in
            let store = CampaignStore(pool)
            let list = A.notification(
                .users((0..<24_000).map { A.user("user-\($0)") }, part: 1, of: 1))
            let cursors = try await store.open(list, to: list.audience!)
            let campaign = try #require(try await store.campaign(A.campaign))
            var seen: Set<UserID> = []
            for var cursor in cursors {
                var count = 0
                while !cursor.isAtEnd {
                    guard case .granted(let upper) = try await store.claim(cursor, redelivered: false) else { break }
                    let page = try await store.page(of: campaign, after: cursor.position, upTo: upper, limit: 700)
                    for member in page.members { #expect(seen.insert(member.user).inserted) }
                    count += page.members.count
                    cursor = cursor.advanced(past: page.end, by: .init())
                }
                #expect((2900...3100).contains(count), "\(count)")
            }
            #expect(seen.count == 24_000)
        }
    }

    @Test func `concurrent reservations share one rate limit`() async throws {
        try await Self.withCampaign(rate: 10) { store, cursor, pool in
            #expect(try await store.reserve(10, of: A.campaign, rate: 10) == nil)
            let wait = try #require(try await store.reserve(10, of: A.campaign, rate: 10))
            #expect(wait > .zero && wait <= .seconds(1))
            // Nothing was used, so the next reservation need not wait.
            try await store.release(10, of: A.campaign, rate: 10)
            let granted = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<10 {
                    group.addTask { try await store.reserve(1000, of: A.campaign, rate: 10) == nil }
                }
                return try await group.reduce(into: 0) { if $1 { $0 += 1 } }
            }
            #expect(granted == 1)
        }
    }

    @Test func `an expired campaign makes no further step`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01")])
            let campaigns = CampaignStore(pool)
            let late = A.notification(.everyone, expiresAt: .now + .seconds(60))
            let cursor = try await campaigns.open(late, to: late.audience!)[0]
            let inTime = CampaignSteps(store: campaigns)
            guard case .step = try await inTime.next(cursor, redelivered: false) else {
                Issue.record("expected a step before the expiration")
                return
            }
            let steps = CampaignSteps(store: campaigns, now: { .now + .seconds(61) })
            guard case .expired = try await steps.next(cursor, redelivered: true) else {
                Issue.record("expected the campaign to be expired")
                return
            }
            #expect(try await Self.state(pool) == "expired")
        }
    }
}
