import AMQP
import DecisionLog
import Foundation
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage
@testable import Rules

/// Broadcast channels of live surfaces, from the pool to their deletion, on a real database. The APNs sender is a stub.
@Suite(.timeLimit(.minutes(8))) struct SurfaceChannelStoreTests {
    static let start = moment("2026-01-10T12:00:00Z")
    static let app = AppID(rawValue: "food")!

    struct Fixture: Sendable {
        let pool: PostgresPool
        let clock = DecisionStoreTests.Clock(SurfaceChannelStoreTests.start)
        let currentRules: CurrentRules
        let bus = InMemoryBus(apps: [SurfaceChannelStoreTests.app])

        init(
            _ pool: PostgresPool, _ channel: String = "channel: { above: 1 }", to: String = "{ users: customer }"
        ) throws {
            self.pool = pool
            currentRules = CurrentRules(
                RuleSets([
                    try RuleFile.parse(
                        SurfaceChannelFileTests.file(channel).replacing("on: [apple, android]", with: "on: apple")
                            .replacing("customer: 21", with: "customer: [21]")
                            .replacing("{ users: customer }", with: to), file: "food.yaml")
                ]))
        }

        var channels: ChannelStore { ChannelStore(pool: pool, logger: .silent) }

        var keeper: ChannelKeeper {
            ChannelKeeper(
                service: "rules", store: channels, currentRules: currentRules, bus: bus, now: { clock.now },
                logger: .silent)
        }

        var worker: ScheduledSendWorker {
            ScheduledSendWorker(
                service: "rules", store: HeldStore(pool: pool, spread: .zero, logger: .silent),
                currentRules: currentRules, bus: bus, bulkThrottle: BulkThrottle(), now: { clock.now },
                logger: .silent)
        }

        var requests: [ChannelRequest] {
            get throws {
                try bus.messages(in: WorkQueue.apnsSenderChannels.name).map {
                    try ChannelRequest.decode(wireBody: $0.body)
                }
            }
        }

        func answer(_ request: ChannelRequest, _ result: ChannelAnswer.Result) async throws {
            try await channels.keep(
                [
                    ChannelAnswer(
                        trace: request.trace.next(id: UUID()), app: request.app, environment: request.environment,
                        id: request.id, result: result)
                ], now: clock.now)
        }

        /// Fills the pool.
        func fill() async throws {
            try await keeper.requestDue()
            for (index, request) in try requests.enumerated() {
                try await answer(request, .created(ChannelID(rawValue: "channel\(index)")!))
            }
        }

        /// Handles an event, and returns the notifications that it publishes at once.
        func happen(
            _ type: String, users: Int = 2, minutes: Int = 9, order: Int = 7, id: String = UUID().uuidString,
            at moment: Timestamp? = nil
        ) async throws -> [PushProtocol.Notification] {
            try await verdicts([event(type, users: users, minutes: minutes, order: order, id: id, at: moment)])[0]
        }

        func event(
            _ type: String, users: Int = 2, minutes: Int = 9, order: Int = 7, id: String = UUID().uuidString,
            at moment: Timestamp? = nil
        ) -> String {
            let names = (1...max(users, 1)).map { "\"u\($0)\"" }.joined(separator: ",")
            return cloudEvent(
                id: id, type: type,
                data: #"{"order":{"id":\#(order),"code":"A","minutes":\#(minutes)},"customer":[\#(names)]}"#,
                extra: #","time":"\#(RFC3339.string(from: (moment ?? clock.now).date))""#)
        }

        func verdicts(_ events: [String]) async throws -> [[PushProtocol.Notification]] {
            let handler = EventHandler(
                currentRules: currentRules,
                store: DecisionStore(pool: pool, spread: .zero, recordedApps: { [SurfaceChannelStoreTests.app] }),
                now: { clock.now })
            let deliveries = try events.map { event in
                let type = try #require(event.split(separator: #""type":""#).last?.split(separator: "\"").first)
                let inbound = delivered(event, routingKey: "food.\(type)").at(clock.now)
                return Delivery(inbound: inbound, message: try handler.decode(inbound))
            }
            return try await handler.handle(deliveries).map { verdict in
                #expect(["done", "discard"].contains(verdict.disposition.label), "\(verdict.disposition)")
                return try verdict.outbound.map { try Notification.decode(wireBody: $0.body) }
            }
        }

        /// The notifications that the worker published.
        var released: [PushProtocol.Notification] {
            get throws {
                try bus.messages(in: WorkQueue.registryNotifications(.interactive).name).map {
                    try Notification.decode(wireBody: $0.body)
                }
            }
        }

        func count(_ condition: SQL) async throws -> Int {
            try await RulesDatabase.count("rules.channel WHERE \(condition)", pool)
        }
    }

    static func with(_ channel: String = "channel: { above: 1 }", _ body: (Fixture) async throws -> Void) async throws {
        try await RulesDatabase.withPool { (pool: PostgresPool) async throws in try await body(Fixture(pool, channel)) }
    }

    private func broadcasts(_ notifications: [PushProtocol.Notification]) -> [PushProtocol.Notification] {
        notifications.filter { $0.broadcast != nil }
    }

    private func minutes(_ notification: PushProtocol.Notification) -> Int64? {
        notification.content.apns?.payload?[path: "aps.content-state.minutes"]?.int
    }

    // MARK: The surface

    @Test func `start, update and end go to the channel, and then it is deleted`() async throws {
        try await Self.with { (fixture: Fixture) async throws in
            try await fixture.fill()
            let start = try await fixture.happen("order.accepted")
            #expect(start.count == 1 && start[0].recipients.count == 2)
            let channel = try #require(start[0].content.apns?.channels?["production"])
            fixture.clock.advance(.seconds(1))
            let update = try await fixture.happen("order.ready", minutes: 5)
            // The tokens of phones without the channel, and the channel; and the alert.
            #expect(Set(update.map(\.rule)) == ["delivery-update", "delivery-update-channel", "delivery-alert-1"])
            let broadcast = try #require(broadcasts(update).first)
            #expect(broadcast.broadcast?.destination == .channel(channel, .production))
            #expect(minutes(broadcast) == 5 && broadcast.expiresAt == fixture.clock.now + SurfaceChannelRole.storage)
            let decided = try await fixture.pool.query(
                "SELECT user_id FROM rules.decision WHERE rule = 'delivery-update-channel'"
            ).column(String.self)
            #expect(decided == ["(channel \(channel) of production)"])
            let end = broadcasts(try await fixture.happen("order.delivered"))
            #expect(end.map(\.rule) == ["delivery-end-channel"])
            // A late update is dropped, and another start of the item has another channel.
            #expect(broadcasts(try await fixture.happen("order.ready", at: fixture.clock.now + .seconds(1))).isEmpty)
            fixture.clock.advance(.seconds(2))
            let again = try await fixture.happen("order.accepted")
            #expect(again[0].content.apns?.channels?["production"] != channel)
            #expect(broadcasts(try await fixture.happen("order.delivered")).count == 1)
            fixture.clock.advance(ChannelStore.grace)
            try await fixture.keeper.requestDue()
            let deletions = try fixture.requests.filter { $0.operation != .create }
            #expect(deletions.count == 2 && deletions.contains { $0.operation == .delete(channel) })
            for request in deletions { try await fixture.answer(request, .deleted) }
            #expect(try await fixture.count("item IS NOT NULL") == 0)
        }
    }

    @Test func `each environment has its channel, and each state goes to both`() async throws {
        let environments = "channel: { above: 1, environments: [production, development] }"
        try await Self.with(environments) { (fixture: Fixture) async throws in
            try await fixture.fill()
            let start = try await fixture.happen("order.accepted")
            let channels = try #require(start[0].content.apns?.channels)
            #expect(Set(channels.keys) == ["production", "development"] && Set(channels.values).count == 2)
            let sent = broadcasts(try await fixture.happen("order.ready"))
            #expect(Set(sent.map { $0.broadcast?.environment }) == [.production, .development])
            #expect(Set(sent.map(\.trace.id)).count == 2 && Set(sent.map { $0.broadcast?.notification }).count == 2)
        }
    }

    @Test func `few recipients, and an empty pool, use tokens`() async throws {
        try await Self.with { (fixture: Fixture) async throws in
            #expect(try await fixture.happen("order.accepted", order: 1)[0].content.apns?.channels == nil)
            try await fixture.fill()
            #expect(try await fixture.happen("order.accepted", users: 1, order: 2)[0].content.apns?.channels == nil)
            #expect(try await fixture.count("item IS NOT NULL") == 0)
            #expect(broadcasts(try await fixture.happen("order.ready", order: 1)).isEmpty)
            // A user who joins a surface with a channel follows it.
            _ = try await fixture.happen("order.accepted", order: 3)
            #expect(try await fixture.happen("order.accepted", users: 1, order: 3)[0].content.apns?.channels != nil)
            #expect(try await fixture.count("item IS NOT NULL") == 1)
        }
    }

    @Test func `a redelivered event publishes the same messages`() async throws {
        try await Self.with { (fixture: Fixture) async throws in
            try await fixture.fill()
            let start = try await fixture.happen("order.accepted", id: "s")
            #expect(try await fixture.happen("order.accepted", id: "s", at: fixture.clock.now) == start)
            let update = try await fixture.happen("order.ready", id: "u")
            // A crash after the commit: the event comes again, also after the end.
            let end = try await fixture.happen("order.delivered", id: "e")
            #expect(try await fixture.happen("order.ready", id: "u") == update && !broadcasts(update).isEmpty)
            #expect(try await fixture.happen("order.delivered", id: "e") == end && !broadcasts(end).isEmpty)
            #expect(try await fixture.count("item IS NOT NULL") == 1)
        }
    }

    @Test func `a large audience gets one broadcast`() async throws {
        try await Self.with { (fixture: Fixture) async throws in
            try await fixture.fill()
            #expect(try await fixture.happen("order.accepted", users: 1200).isEmpty)
            let teller = FanOutWorker(
                service: "rules", store: FanOutStore(decisions: DecisionStore(pool: fixture.pool, spread: .zero)),
                currentRules: fixture.currentRules, bus: fixture.bus, now: { fixture.clock.now }, logger: .silent)
            while try await teller.processNext() {}
            let starts = try fixture.released.filter { $0.rule == "delivery-start" }
            #expect(starts.reduce(0) { $0 + $1.recipients.count } == 1200)
            let channels = Set(starts.map { $0.content.apns?.channels?["production"] })
            #expect(channels.count == 1 && channels.first != .some(nil))
            let update = try await fixture.happen("order.ready", users: 1200, id: "u")
            #expect(update.map(\.rule) == ["delivery-update-channel"])
            // A redelivery before the outcome publishes it again.
            #expect(try await fixture.happen("order.ready", users: 1200, id: "u") == update)
        }
    }

    // MARK: Pace and order

    @Test func `paced states wait for the step of the clock, and the newest is sent once`() async throws {
        try await Self.with { (fixture: Fixture) async throws in
            try await fixture.fill()
            _ = try await fixture.happen("order.accepted")
            for second in 1...4 {
                fixture.clock.advance(.seconds(1))
                #expect(broadcasts(try await fixture.happen("courier.moved", minutes: 9 - second)).isEmpty)
            }
            // A late one is older than the newest.
            let old = fixture.clock.now + .seconds(-2)
            #expect(broadcasts(try await fixture.happen("courier.moved", minutes: 99, at: old)).isEmpty)
            fixture.clock.advance(.seconds(6))
            try await fixture.worker.releaseDue()
            try await fixture.worker.releaseDue()
            let sent = broadcasts(try fixture.released)
            #expect(sent.map(minutes) == [5])
            #expect(sent.first?.content.apns?.headers?["apns-priority"] == "5")
            #expect(sent.first?.expiresAt == Self.start + .seconds(10) + SurfaceChannelRole.storage)
            let held: SQL = """
                rules.held JOIN rules.saying ON saying.id = held.saying
                WHERE user_id LIKE '(channel%' AND rule LIKE '%update%'
                """
            #expect(try await RulesDatabase.count(held, fixture.pool) == 0)
        }
    }

    @Test func `a state at once overtakes a waiting older one, also in the same batch`() async throws {
        try await Self.with { (fixture: Fixture) async throws in
            try await fixture.fill()
            _ = try await fixture.happen("order.accepted")
            fixture.clock.advance(.seconds(1))
            _ = try await fixture.happen("courier.moved", minutes: 8)
            fixture.clock.advance(.seconds(1))
            let now = fixture.clock.now
            let both = try await fixture.verdicts([
                fixture.event("courier.moved", minutes: 7, at: now),
                fixture.event("order.ready", minutes: 6, at: now + .seconds(1)),
            ])
            #expect(broadcasts(both.flatMap(\.self)).map(minutes) == [6])
            fixture.clock.advance(.seconds(20))
            try await fixture.worker.releaseDue()
            #expect(broadcasts(try fixture.released).isEmpty)
            let replaced: SQL = "rules.decision WHERE rule = 'delivery-update-2-channel' AND reason = 'replaced'"
            #expect(try await RulesDatabase.count(replaced, fixture.pool) == 2)
        }
    }

    /// A model: of the states that were decided so far, the newest is the last one sent.
    @Test(arguments: 0..<6)
    func `in any order of arrival, no older state follows a newer one`(_ seed: UInt64) async throws {
        try await Self.with { (fixture: Fixture) async throws in
            var random = SplitMix(seed: seed)
            try await fixture.fill()
            _ = try await fixture.happen("order.accepted")
            var sent: [Int64] = []
            var newest: Int64 = 0
            for _ in 0..<40 {
                fixture.clock.advance(.milliseconds(Int64.random(in: 100...4000, using: &random)))
                let age = Int64.random(in: 0...5000, using: &random)
                let at = fixture.clock.now + .milliseconds(-age)
                // The state is its time in milliseconds.
                let state = at.milliseconds - Self.start.milliseconds
                let type = Int.random(in: 0..<3, using: &random) == 0 ? "order.ready" : "courier.moved"
                sent += broadcasts(try await fixture.happen(type, minutes: Int(state), at: at)).compactMap(minutes)
                if state >= 0 { newest = max(newest, state) }
                let known = broadcasts(try fixture.released).count
                try await fixture.worker.releaseDue()
                sent += broadcasts(try fixture.released).dropFirst(known).compactMap(minutes)
            }
            fixture.clock.advance(.seconds(10))
            let known = broadcasts(try fixture.released).count
            try await fixture.worker.releaseDue()
            sent += broadcasts(try fixture.released).dropFirst(known).compactMap(minutes)
            #expect(sent == sent.sorted() && sent.last == newest, "\(sent)")
        }
    }

    // MARK: Endings

    @Test func `a surface without an end ends by time, and its channel is deleted`() async throws {
        try await Self.with { (fixture: Fixture) async throws in
            try await fixture.fill()
            _ = try await fixture.happen("order.accepted")
            fixture.clock.advance(.seconds(3600))
            _ = try await fixture.happen("order.ready")
            fixture.clock.advance(.seconds(3601))
            try await fixture.worker.releaseDue()
            #expect(broadcasts(try fixture.released).isEmpty)
            fixture.clock.advance(.seconds(3600))
            try await fixture.worker.releaseDue()
            #expect(broadcasts(try fixture.released).map(\.rule) == ["delivery-timeout-channel"])
            #expect(broadcasts(try await fixture.happen("order.ready")).isEmpty)
            fixture.clock.advance(ChannelStore.grace)
            try await fixture.keeper.requestDue()
            #expect(try fixture.requests.contains { $0.operation != .create })
        }
    }

    @Test func `the revocation of a start ends the surface of its channel at once`() async throws {
        try await Self.with { (fixture: Fixture) async throws in
            try await fixture.fill()
            _ = try await fixture.happen("order.accepted", id: "s")
            fixture.clock.advance(.seconds(1))
            _ = try await fixture.happen("courier.moved")
            try await fixture.pool.execute(
                """
                INSERT INTO rules.revocation (id, app, event_id, inbox, source, requested_by, due_at)
                VALUES (gen_random_uuid(), 'food', 's', 'remove', 'operator', 'test', clock_timestamp())
                """)
            let revoker = NotificationRevoker(
                service: "rules", store: RevocationStore(pool: fixture.pool, logger: .silent),
                currentRules: fixture.currentRules, bus: fixture.bus, now: { fixture.clock.now }, logger: .silent)
            try await revoker.revokeDue()
            let ends = broadcasts(try fixture.released)
            #expect(ends.map(\.rule) == ["delivery-end-channel"])
            let aps = ends.first?.content.apns?.payload?["aps"]
            #expect(aps?["event"] == "end" && aps?["dismissal-date"] == .int(fixture.clock.now.seconds))
            #expect(
                try await RulesDatabase.count(
                    "rules.decision WHERE user_id LIKE '(channel%' AND reason = 'surface-ended'", fixture.pool) == 1)
            fixture.clock.advance(.seconds(30))
            try await fixture.worker.releaseDue()
            #expect(broadcasts(try fixture.released).count == 1)
            #expect(broadcasts(try await fixture.happen("order.ready")).isEmpty)
            fixture.clock.advance(ChannelStore.grace)
            try await fixture.keeper.requestDue()
            #expect(try fixture.requests.contains { $0.operation != .create })
        }
    }

    @Test func `recorded decisions about channels are reproduced`() async throws {
        try await Self.with { (fixture: Fixture) async throws in
            try await fixture.fill()
            for type in ["order.accepted", "courier.moved", "order.ready", "order.delivered"] {
                _ = try await fixture.happen(type)
                fixture.clock.advance(.seconds(1))
            }
            let rules = fixture.currentRules.ruleSets
            let check = try await RecordingStoreTests.comparison(rules, rules, fixture.pool).check
            #expect(check.differing.isEmpty && check.obstacles.isEmpty)
            let decided = try await RulesDatabase.count("rules.decision WHERE step = 0", fixture.pool)
            #expect(check.reproduced == decided)
        }
    }

    @Test func `an unanswered deletion is repeated`() async throws {
        try await Self.with { (fixture: Fixture) async throws in
            try await fixture.fill()
            _ = try await fixture.happen("order.accepted")
            _ = try await fixture.happen("order.delivered", at: fixture.clock.now + .seconds(1))
            fixture.clock.advance(ChannelStore.grace)
            try await fixture.keeper.requestDue()
            fixture.clock.advance(ChannelStore.patience)
            try await fixture.keeper.requestDue()
            let deletions = try fixture.requests.filter { $0.operation != .create }
            #expect(deletions.count == 2 && Set(deletions.map(\.id)).count == 1)
        }
    }
}
