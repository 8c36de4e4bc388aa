import AMQP
import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

/// The pool of unused broadcast channels, on a real database.
@Suite(.timeLimit(.minutes(5))) struct ChannelPoolTests {
    @Test func `the pool asks until it is answered, and not more than it needs`() async throws {
        try await SurfaceChannelStoreTests.with { (fixture: SurfaceChannelStoreTests.Fixture) async throws in
            try await fixture.keeper.requestDue()
            try await fixture.keeper.requestDue()
            let requests = try fixture.requests
            #expect(requests.count == ChannelStore.ready)
            #expect(requests.allSatisfy { $0.operation == .create && $0.environment == .production })
            // Two are answered, one is refused, and one answer is lost.
            try await fixture.answer(requests[0], .created(ChannelID(rawValue: "a")!))
            try await fixture.answer(requests[1], .created(ChannelID(rawValue: "b")!))
            try await fixture.answer(requests[2], .refused(reason: "FeatureNotEnabled"))
            fixture.clock.advance(ChannelStore.patience)
            try await fixture.keeper.requestDue()
            #expect(try fixture.requests.map(\.id) == requests.map(\.id) + [requests[3].id])
            fixture.clock.advance(ChannelStore.refusalPause)
            try await fixture.keeper.requestDue()
            #expect(Set(try fixture.requests.dropFirst(5).map(\.id)) == Set(requests[2...].map(\.id)))
        }
    }

    @Test func `a repeated answer changes nothing, and a second channel joins the pool`() async throws {
        try await SurfaceChannelStoreTests.with { (fixture: SurfaceChannelStoreTests.Fixture) async throws in
            try await fixture.keeper.requestDue()
            let request = try #require(try fixture.requests.first)
            for channel in ["a", "a", "b", "a", "b"] {
                try await fixture.answer(request, .created(ChannelID(rawValue: channel)!))
            }
            #expect(try await fixture.count("channel IS NOT NULL AND item IS NULL AND due_at IS NULL") == 2)
            #expect(try await fixture.count("true") == ChannelStore.ready + 1)
            try await fixture.keeper.requestDue()
            #expect(try await fixture.count("true") == ChannelStore.ready + 1)
        }
    }

    @Test func `of many unused channels, some are deleted`() async throws {
        try await SurfaceChannelStoreTests.with { (fixture: SurfaceChannelStoreTests.Fixture) async throws in
            try await fixture.keeper.requestDue()
            let request = try #require(try fixture.requests.first)
            for number in 0..<12 { try await fixture.answer(request, .created(ChannelID(rawValue: "c\(number)")!)) }
            try await fixture.keeper.requestDue()
            #expect(try await fixture.count("ends_at IS NOT NULL") == 12 - ChannelStore.surplus)
        }
    }

    @Test func `a group counts with all of its members`() async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in
            for (above, opens) in [(1500, false), (1499, true)] {
                let fixture = try SurfaceChannelStoreTests.Fixture(
                    pool, "channel: { above: \(above) }", to: "{ group: all }")
                try await fixture.fill()
                try await pool.execute(
                    """
                    INSERT INTO rules.member (app, circle, user_id, has_left, at)
                    SELECT 'food', 'all', 'm-' || n, false, now() FROM generate_series(1, 1500) AS n
                    ON CONFLICT DO NOTHING
                    """)
                _ = try await fixture.happen("order.accepted")
                #expect(try await fixture.count("item IS NOT NULL") == (opens ? 1 : 0))
            }
        }
    }

    @Test func `two processes together ask for no more channels`() async throws {
        try await SurfaceChannelStoreTests.with { (fixture: SurfaceChannelStoreTests.Fixture) async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<6 { group.addTask { try await fixture.keeper.requestDue() } }
                try await group.waitForAll()
            }
            #expect(try await fixture.count("true") == ChannelStore.ready)
            #expect(try Set(fixture.requests.map(\.id)).count == ChannelStore.ready)
        }
    }

    @Test func `unused channels are deleted once no rule needs them`() async throws {
        try await SurfaceChannelStoreTests.with { (fixture: SurfaceChannelStoreTests.Fixture) async throws in
            try await fixture.fill()
            fixture.currentRules.put(RuleSets([try RuleFile.parse(LiveSurfaceTests.file(), file: "food.yaml")]))
            try await fixture.keeper.requestDue()
            let deletions = try fixture.requests.filter { $0.operation != .create }
            #expect(Set(deletions.map(\.operation)).count == ChannelStore.ready)
            for request in deletions { try await fixture.answer(request, .deleted) }
            #expect(try await fixture.count("true") == 0)
        }
    }
}
