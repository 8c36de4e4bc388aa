import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// Phones that report the token of their Live Activity late, on a real database.
@Suite(.timeLimit(.minutes(5))) struct LateActivityTests {
    typealias Fixture = StoreFixture

    /// A message about the order `o` to users.
    static func notification(
        _ event: String, at seconds: Int64, to users: [String] = ["a"], scope: String? = "o"
    ) -> PushProtocol.Notification {
        let aps: JSONValue = [
            "event": .string(event), "timestamp": .int(seconds), "content-state": ["n": .int(seconds)],
        ]
        let id = DerivedID.uuid5(DerivedID.namespace, [event, "\(seconds)"])
        return PushProtocol.Notification(
            trace: Trace(id: id, correlation: "e", causation: "e"), app: Fixture.app, rule: "delivery-\(event)",
            lane: .interactive,
            content: Content(apns: APNsOverride(headers: ["apns-push-type": "liveactivity"], payload: ["aps": aps])),
            scope: scope,
            recipients: users.map {
                .init(user: UserID(rawValue: $0)!, notification: DerivedID.uuid5(id, [$0]))
            })
    }

    /// The registry's handler and worker on one database and bus.
    struct Registry {
        let pool: PostgresPool
        let store: RegistrationStore
        let bus = InMemoryBus(apps: [Fixture.app])

        func handle(_ notifications: PushProtocol.Notification...) async throws -> [Push] {
            let handler = NotificationHandler(store: store, campaigns: CampaignStore(pool), apps: [Fixture.app])
            let deliveries = try notifications.map { notification in
                let inbound = Inbound(
                    queue: .registryNotifications(.interactive), exchange: "notifications",
                    routingKey: "interactive.family-portal", body: try notification.wireBody())
                return Delivery(inbound: inbound, message: try handler.decode(inbound))
            }
            return try await handler.handle(deliveries).flatMap(\.outbound)
                .filter { $0.exchange == .pushes }.map { try Push.decode(wireBody: $0.body) }
        }

        /// The pushes to late phones, as `<token> <event> <second>`, in order.
        func late() async throws -> [String] {
            try await LateActivityWorker(
                service: "token-registry", states: LiveStateStore(pool, logger: .silent), registrations: store,
                bus: bus,
                now: { .now }, logger: .silent
            ).sendDue()
            return try pushes().map { push in
                let aps = push.content.apns?.payload?[path: "aps"]
                let tokens = push.targets.map(\.token.secret).joined(separator: ",")
                return "\(tokens) \(aps?["event"]?.string ?? "-") \(aps?["timestamp"]?.int ?? 0)"
            }
        }

        func pushes() throws -> [Push] {
            try bus.messages(in: "apns-sender.pushes.interactive.family-portal").map {
                try Push.decode(wireBody: $0.body)
            }
        }

        func report(_ token: String, of user: String = "a", on installation: String = "phone", scope: String = "o")
            async throws
        {
            try await store.register([
                Fixture.claim(user, token, kind: .liveActivity, on: installation, scope: scope)
            ])
        }

        func phone(_ user: String, _ token: String, on installation: String = "phone") async throws {
            try await store.register([Fixture.claim(user, token, kind: .pushToStart, on: installation)])
        }

        func states() async throws -> Int {
            try await pool.query("SELECT count(*) FROM registry.live_state").single(Int.self)
        }
    }

    private func with(_ body: (Registry) async throws -> Void) async throws {
        try await Fixture.withStore { store, pool in try await body(Registry(pool: pool, store: store)) }
    }

    @Test func `given updates before the token, then the phone gets the newest once`() async throws {
        try await with { registry in
            try await registry.phone("a", "01")
            #expect(try await registry.handle(Self.notification("update", at: 10)).isEmpty)
            #expect(try await registry.handle(Self.notification("update", at: 20)).isEmpty)
            // Out of order.
            _ = try await registry.handle(Self.notification("update", at: 15))
            try await registry.report("02")
            #expect(try await registry.late() == ["02 update 20"])
            let target = try #require(try registry.pushes().first?.targets.first)
            #expect(target.notification == Self.notification("update", at: 20).recipients[0].notification)
            // The app reports the token again at each launch.
            try await registry.report("02")
            #expect(try await registry.late().count == 1)
            // The next update goes to the token.
            #expect(try await registry.handle(Self.notification("update", at: 30)).flatMap(\.targets).count == 1)
        }
    }

    @Test func `given an end before the token, then the activity ends at once`() async throws {
        try await with { registry in
            try await registry.phone("a", "01")
            // One batch: neither the update of the same second nor the older one replaces the end.
            _ = try await registry.handle(
                Self.notification("end", at: 20), Self.notification("update", at: 20),
                Self.notification("update", at: 10))
            _ = try await registry.handle(Self.notification("update", at: 20))
            try await registry.report("02")
            #expect(try await registry.late() == ["02 end 20"])
        }
    }

    @Test func `given a second phone without a token, then it gets the state, and the first does not`() async throws {
        try await with { registry in
            for phone in ["one", "two"] { try await registry.phone("a", phone == "one" ? "01" : "02", on: phone) }
            try await registry.report("03", on: "one")
            #expect(try await registry.handle(Self.notification("update", at: 10)).flatMap(\.targets).count == 1)
            _ = try await registry.late()
            try await registry.report("04", on: "two")
            #expect(try await registry.late().last == "04 update 10")
        }
    }

    @Test func `given phones with their tokens, then no state is stored`() async throws {
        try await with { registry in
            try await registry.phone("a", "01")
            try await registry.report("02")
            _ = try await registry.handle(Self.notification("update", at: 10), Self.notification("end", at: 20))
            _ = try await registry.handle(Self.notification("start", at: 30, scope: nil))
            #expect(try await registry.states() == 0)
            #expect(try await registry.late() == [])
        }
    }

    @Test func `given the token of another user's activity, then it gets no state`() async throws {
        try await with { registry in
            try await registry.phone("a", "01")
            _ = try await registry.handle(Self.notification("update", at: 10))
            try await registry.report("02", of: "b", on: "other")
            try await registry.report("03", scope: "another order")
            #expect(try await registry.late() == [])
            // A token that its user has lost since gets nothing either: another user signed in on the phone.
            try await registry.report("04")
            try await registry.report("04", of: "b")
            #expect(try await registry.late() == [])
        }
    }

    @Test func `given an active token of another user, then it stays theirs, except on the same phone`() async throws {
        try await with { registry in
            let claim = Fixture.claim("b", "02", kind: .liveActivity, on: "other", scope: "o")
            try await registry.report("02")
            #expect(try await registry.store.register([claim]).isEmpty)
            #expect(try await registry.store.tokens(of: "a") == ["02"])
            try await registry.report("02", of: "b")
            #expect(try await registry.store.tokens(of: "b") == ["02"])
            try await registry.store.unregister([claim])
        }
    }

    @Test func `given a token that is reported while the state is handled, then it gets the state`() async throws {
        try await with { registry in
            try await registry.phone("a", "01")
            // The worker looks before the state is stored, and the handler has read the registrations before the token.
            let (handler, worker) = (registry, registry)
            for round in 1...20 {
                let token = "1\(round)"
                let (at, scope) = (Int64(round), "race-\(round)")
                async let handled = handler.handle(Self.notification("update", at: at, scope: scope))
                async let reported: Void = worker.report(token, scope: scope)
                _ = try await reported
                let late = try await worker.late().filter { $0.hasPrefix("\(token) ") }
                let sent = try await handled.flatMap(\.targets).map(\.token.secret)
                let after = try await worker.late().filter { $0.hasPrefix("\(token) ") }
                #expect(!late.isEmpty || !after.isEmpty || sent.contains(token), "round \(round)")
            }
        }
    }

    @Test func `given an erased user or an old state, then the state is deleted`() async throws {
        try await with { registry in
            for user in ["a", "b"] { try await registry.phone(user, user == "a" ? "01" : "02", on: user) }
            _ = try await registry.handle(Self.notification("update", at: 10, to: ["a", "b"]))
            #expect(try await registry.states() == 2)
            try await registry.store.erase(Fixture.user("a"))
            #expect(try await registry.states() == 1)
            let states = LiveStateStore(registry.pool, logger: .silent)
            #expect(try await states.sweep(now: .now + .seconds(11 * 3600)) == 0)
            #expect(try await states.sweep(now: .now + .seconds(13 * 3600)) == 1)
        }
    }
}
