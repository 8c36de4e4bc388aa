import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit
import ServiceLifecycle
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// Campaigns on a real broker and a real database.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(4)))
struct CampaignRunnerTests {
    typealias Fixture = StoreFixture
    typealias A = AudienceFixture

    /// The campaign part of a registry.
    private struct World: Sendable {
        let store: RegistrationStore
        let pool: PostgresPool
        let bus: TestBus
        let administrator: AMQPAdministrator
        let live: AMQPBus

        func runner() throws -> CampaignRunner {
            let probe = QueueProbe(try AMQPConfiguration(url: bus.url, connectionName: "campaigns"))
            return CampaignRunner(
                service: "token-registry", store: CampaignStore(pool), bus: live,
                depth: { try await probe.status(of: $0)?.messages }, bulkThrottle: BulkThrottle(pauseFactor: 3),
                logger: .silent)
        }

        /// Opens a campaign as the notification stage does.
        func open(_ notification: PushProtocol.Notification) async throws {
            let handler = NotificationHandler(store: store, campaigns: CampaignStore(pool), apps: [Fixture.app])
            let inbound = Inbound(
                queue: .registryNotifications(.bulk), exchange: "notifications", routingKey: "bulk.family-portal",
                body: try notification.wireBody())
            let delivery = Delivery(inbound: inbound, message: try handler.decode(inbound))
            for verdict in try await handler.handle([delivery]) {
                #expect(verdict.disposition == .done)
                for outbound in verdict.outbound {
                    let answer = try await administrator.publish(outbound.message(from: "token-registry"))
                    #expect(answer == .confirmed)
                }
            }
        }

        /// Takes the pushes in a sender's queue.
        func pushes(_ provider: Provider) async throws -> [Push] {
            var pushes: [Push] = []
            while let delivery = try await administrator.get(WorkQueue.senderPushes(provider, .bulk, Fixture.app).name)
            {
                pushes.append(try Push.decode(wireBody: delivery.body))
            }
            return pushes
        }

        func state() async throws -> String {
            try await pool.query("SELECT state FROM registry.campaign").single(String.self)
        }
    }

    private static func withWorld(_ body: @escaping @Sendable (World) async throws -> Void) async throws {
        try await Fixture.withStore { store, pool in
            try await TestBus.run(apps: [Fixture.app]) { bus in
                let configuration = try AMQPConfiguration(url: bus.url, connectionName: "test")
                let publisher = AMQPPublisher(configuration: configuration, logger: .silent)
                let consumer = AMQPConsumer(configuration: configuration, logger: .silent)
                let live = AMQPBus(publisher: publisher, consumer: consumer)
                let group = ServiceGroup(services: [publisher, consumer], logger: .silent)
                async let running: Void = group.run()
                let outcome = await Result {
                    try await AMQPAdministrator.with(configuration, logger: .silent) { administrator in
                        try await body(
                            World(store: store, pool: pool, bus: bus, administrator: administrator, live: live))
                    }
                }
                await group.triggerGracefulShutdown()
                try await running
                try outcome.get()
            }
        }
    }

    /// Registers `count` users with a phone each, every tenth also with another provider's.
    private static func fill(_ pool: PostgresPool, _ count: Int) async throws {
        for (provider, step) in [("apns", 1), ("fcm", 10)] {
            try await pool.execute(
                """
                INSERT INTO registry.registration (device_id, app, user_id, provider, environment, token, registered_at,
                    state_changed_at)
                SELECT gen_random_uuid(), \(Fixture.app.rawValue), 'user-' || n, \(provider), 'production',
                    \(provider) || '-' || n, now(), now()
                FROM generate_series(1, \(count), \(step)) AS n
                """)
        }
    }

    private static func during(_ runners: [CampaignRunner], _ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for runner in runners { group.addTask { try await runner.run() } }
            try await body()
            group.cancelAll()
        }
    }

    @Test func `three processes share a campaign, and push to each device once`() async throws {
        try await Self.withWorld { world in
            try await Self.fill(world.pool, 30_000)
            // A repeat of the notification.
            for _ in 0..<2 { try await world.open(A.notification(.everyone)) }
            let runners = [try world.runner(), try world.runner(), try world.runner()]
            try await Self.during(runners) {
                try await eventually("the campaign is done", within: .seconds(120)) {
                    try await world.state() == "done"
                }
            }
            let apns = try await world.pushes(.apns)
            let fcm = try await world.pushes(.fcm)
            let tokens = (apns + fcm).flatMap(\.targets).map(\.token.secret)
            #expect(tokens.count == 33_000 && Set(tokens).count == 33_000)
            #expect((apns + fcm).allSatisfy { $0.lane == .bulk && $0.targets.count <= Push.maximumTargets })
            #expect(Set((apns + fcm).map(\.trace.id)).count == apns.count + fcm.count)
            let notifications = Set((apns + fcm).flatMap(\.targets).map(\.notification))
            #expect(notifications.count == 30_000)
            let row = try await world.pool.query(
                "SELECT sum(devices)::bigint, sum(users)::bigint, sum(pushes)::bigint FROM registry.campaign_range")[0]
            let sums = [
                try row.decode(Int.self, at: 0), try row.decode(Int.self, at: 1), try row.decode(Int.self, at: 2),
            ]
            #expect(sums == [33_000, 30_000, apns.count + fcm.count])
            #expect(try await world.bus.status(WorkQueue.registryCampaigns.name).messages == 0)
        }
    }

    @Test func `a paused campaign rests, a resumed one continues, a cancelled one ends`() async throws {
        try await Self.withWorld { world in
            try await Self.fill(world.pool, 100)
            func set(_ state: String) async throws {
                try await world.pool.execute(
                    """
                    UPDATE registry.campaign SET state = \(state),
                        finished_at = CASE WHEN \(state) = 'cancelled' THEN clock_timestamp() END
                    """)
            }
            try await world.open(A.notification(.everyone))
            try await set("paused")
            try await Self.during([try world.runner()]) {
                try await eventually("the cursor rests", within: .seconds(60)) {
                    try await world.bus.status(RetryLevel.seconds5.queueName).messages == 1
                }
                #expect(try await world.pushes(.apns) == [])
                try await set("running")
                try await eventually("the campaign is done", within: .seconds(60)) {
                    try await world.state() == "done"
                }
            }
            #expect(try await world.pushes(.apns).flatMap(\.targets).count == 100)

            try await world.pool.execute("DELETE FROM registry.campaign_range")
            try await world.pool.execute("DELETE FROM registry.campaign")
            try await world.open(A.notification(.everyone))
            try await set("cancelled")
            try await Self.during([try world.runner()]) {
                try await eventually("the cursor is gone", within: .seconds(60)) {
                    try await world.bus.status(WorkQueue.registryCampaigns.name).messages == 0
                }
            }
            #expect(try await world.pushes(.apns) == [])
        }
    }

    @Test func `users without a device get outcomes, and the rate limit holds`() async throws {
        try await Self.withWorld { world in
            try await Self.fill(world.pool, 40)
            let users = (1...40).map { A.user("user-\($0)") } + [A.user("nobody")]
            let begin = ContinuousClock.now
            try await world.open(A.notification(.users(users, part: 1, of: 1), rate: 20))
            try await Self.during([try world.runner()]) {
                try await eventually("the campaign is done", within: .seconds(60)) {
                    try await world.state() == "done"
                }
            }
            // 44 devices at 20 a second: the last is due in the third second.
            #expect(ContinuousClock.now - begin >= .seconds(1))
            let outcomes = try await world.bus.outcomes(1)
            #expect(outcomes.map(\.answer) == [.skipped(reason: "no-device")])
            #expect(
                outcomes.map(\.notification)
                    == [DerivedID.notification(campaign: A.campaign, recipient: A.user("nobody"))])
        }
    }

    @Test func `a segment's users wait in the rules' queue of the app, and no sender gets a push`() async throws {
        try await Self.withWorld { world in
            try await Self.fill(world.pool, 500)
            let queue = WorkQueue.rulesAppEvents(Fixture.app).name
            try await world.open(A.notification(.everyone, resolving: SegmentTests.event))
            var users: [UserID] = []
            try await Self.during([try world.runner()]) {
                // Takes the pages as rules does: the runner waits while several are in the queue.
                try await eventually("the campaign is done and its pages are read", within: .seconds(60)) {
                    while let page = try await world.administrator.get(queue) {
                        let event = try CloudEvents.decode(
                            routingKey: page.routingKey, contentType: nil, headers: [:], body: page.body)
                        users += try SegmentPage(event).users
                    }
                    return try await world.state() == "done" && users.count >= 500
                }
            }
            #expect(users.count == 500 && Set(users).count == 500)
            #expect(try await world.pushes(.apns) == [])
            #expect(try await world.pushes(.fcm) == [])
        }
    }

    @Test func `a message that is no cursor is set aside, and campaigns continue`() async throws {
        try await Self.withWorld { world in
            try await Self.fill(world.pool, 10)
            _ = try await world.administrator.publish(
                AMQPMessage(exchange: "devices", routingKey: RoutingKey.campaignCursor, body: Array("{}".utf8)))
            try await world.open(A.notification(.everyone))
            try await Self.during([try world.runner()]) {
                try await eventually("the campaign is done", within: .seconds(60)) {
                    try await world.state() == "done"
                }
            }
            #expect(try await world.bus.status(WorkQueue.registryCampaigns.deadName).messages == 1)
        }
    }

    @Test func `a notification with another app or lane than its routing key is rejected`() async throws {
        try await Fixture.withStore { store, pool in
            let handler = NotificationHandler(store: store, campaigns: CampaignStore(pool), apps: [Fixture.app])
            for (key, isTaken) in [("bulk.family-portal", true), ("bulk.bank", false), ("interactive.bank", false)] {
                let inbound = Inbound(
                    queue: .registryNotifications(.bulk), exchange: "notifications", routingKey: key,
                    body: try A.notification(.everyone).wireBody())
                do throws(WireError) {
                    _ = try handler.decode(inbound)
                    #expect(isTaken, "\(key)")
                } catch {
                    #expect(!isTaken && error.code == "wrong-routing-key", "\(key)")
                }
            }
        }
    }

    @Test func `a campaign of an unconfigured app is dead-lettered`() async throws {
        try await Fixture.withStore { store, pool in
            let handler = NotificationHandler(store: store, campaigns: CampaignStore(pool), apps: [])
            let inbound = Inbound(
                queue: .registryNotifications(.bulk), exchange: "notifications", routingKey: "bulk.family-portal",
                body: try A.notification(.everyone).wireBody())
            let message = try handler.decode(inbound)
            let verdicts = try await handler.handle([Delivery(inbound: inbound, message: message)])
            guard case .deadLetter(let reason) = verdicts[0].disposition else {
                Issue.record("it was not rejected")
                return
            }
            #expect(reason.code == "unknown-app")
        }
    }
}

extension Result where Success == Void, Failure == any Error {
    fileprivate init(_ body: () async throws -> Void) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
