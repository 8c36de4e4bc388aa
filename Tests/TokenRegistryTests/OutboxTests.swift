import AMQP
import Contracts
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// Every change is published as an event, at least once, in order, without a token.
@Suite(.timeLimit(.minutes(2))) struct OutboxTests {
    typealias Fixture = StoreFixture
    static let listener = Topology.Binding(exchange: "devices", queue: "listener", routingKey: "event.#")

    /// A bus with or without a queue bound to device events.
    private static func bus(isHeard: Bool = true) -> InMemoryBus {
        var topology = Topology(apps: [Fixture.app])
        topology.queues.append(Topology.Queue(name: "listener", arguments: [:]))
        if isHeard { topology.bindings.append(listener) }
        return InMemoryBus(topology: topology)
    }

    private static func relay(_ pool: PostgresPool, _ bus: InMemoryBus) -> OutboxRelay {
        OutboxRelay(service: "token-registry", store: OutboxStore(pool), bus: bus, logger: Logger(label: "tests"))
    }

    private static func events(_ bus: InMemoryBus) throws -> [DeviceEvent] {
        try bus.messages(in: "listener").map { try DeviceEvent.decode(wireBody: $0.body) }
    }

    private static func waiting(_ pool: PostgresPool) async throws -> Int {
        try await pool.query("SELECT count(*) FROM registry.outbox").single(Int.self)
    }

    @Test func `each change is published once, in order, with its routing key`() async throws {
        try await Fixture.withStore { store, pool in
            let claim = Fixture.claim("a", "0a0b0c0d", on: "phone", at: .now + .seconds(-60))
            try await store.register([claim])
            try await store.register([claim])
            try await store.register([Fixture.claim("b", "0a0b0c0d")])
            try await store.unregister([Fixture.claim("b", "0a0b0c0d")])
            try await store.erase(Fixture.user("b"))
            let bus = Self.bus()
            #expect(try await Self.relay(pool, bus).publishDue() == false)
            let events = try Self.events(bus)
            #expect(events.map(\.change) == [.registered, .replaced, .registered, .signedOut, .erased, .userErased])
            #expect(events.map(\.user.rawValue) == ["a", "a", "b", "b", "b", "b"])
            #expect(events.map { $0.device?.active } == [true, false, true, false, false, nil])
            #expect(events.prefix(5).allSatisfy { $0.device?.id == claim.device && $0.device?.kind == .alert })
            #expect(events[0].device?.installation?.rawValue == "phone")
            #expect(bus.messages(in: "listener").map(\.routingKey) == events.map(\.routingKey))
            #expect(Set(events.map(\.trace.id)).count == 6)
            for message in bus.messages(in: "listener") {
                #expect(!String(decoding: message.body, as: UTF8.self).contains("0a0b0c0d"))
            }
            #expect(try await Self.waiting(pool) == 0)
        }
    }

    @Test func `an invalidation, a correction and an eviction have their own events`() async throws {
        try await Fixture.withStore(devicesPerUser: 2) { store, pool in
            let one = Fixture.claim("a", "01")
            try await store.register([one])
            _ = try await store.correct(device: one.device, of: Fixture.app, to: .development)
            for token in ["02", "03"] { try await store.register([Fixture.claim("a", token)]) }
            let word = Invalidation(
                app: Fixture.app, device: Fixture.claim("a", "03").device, notRegisteredSince: .now + .seconds(60),
                reason: "Unregistered")
            _ = try await store.deactivate([word])
            let bus = Self.bus()
            _ = try await Self.relay(pool, bus).publishDue()
            let told = try Self.events(bus).map(\.change)
            #expect(
                told.sorted { $0.rawValue < $1.rawValue }
                    == [.corrected, .deactivated, .evicted, .registered, .registered, .registered, .registered])
            #expect(try Self.events(bus).first { $0.change == .deactivated }?.reason == "Unregistered")
        }
    }

    @Test func `an upstream that asks for reports gets each dead device once, without a token`() async throws {
        try await Fixture.withStore { store, pool in
            let claim = Fixture.claim("a", "0a0b0c0d", on: "phone")
            try await store.register([claim])
            let word = Invalidation(
                app: Fixture.app, device: claim.device, notRegisteredSince: .now + .seconds(60), reason: "Unregistered")
            _ = try await store.deactivate([word])
            let consumers = ReportConsumers(upstreams: [Fixture.app])
            let bus = InMemoryBus(topology: Topology(apps: [Fixture.app], reports: consumers))
            let queue = UpstreamQueue.name(of: Fixture.app)
            let relay = OutboxRelay(
                service: "token-registry", store: OutboxStore(pool), bus: bus, isReported: { $0 == Fixture.app },
                logger: .silent)
            _ = try await relay.publishDue()
            #expect(try await Self.waiting(pool) == 0)
            let message = try #require(bus.messages(in: queue).first)
            #expect(bus.messages(in: queue).count == 1)
            #expect(message.routingKey == "report.dead.\(Fixture.app)")
            let report = try WireCoding.decode(JSONValue.self, from: message.body)
            let contract = try #require(MessageContract.all.first { $0.name == "dead-device-report" })
            #expect(SchemaValidator(contract.schema, isClosed: true).problems(of: report) == [])
            #expect(report["data"]?["device_id"]?.string == claim.device.uuidString.lowercased())
            #expect(report["data"]?["reason"] == "Unregistered" && report["data"]?["installation_id"] == "phone")
            #expect(!String(decoding: message.body, as: UTF8.self).contains("0a0b0c0d"))
            // An app that does not ask.
            try await store.register([claim])
            _ = try await store.deactivate([word])
            _ = try await Self.relay(pool, bus).publishDue()
            #expect(bus.messages(in: queue).count == 1)
        }
    }

    @Test func `an unconfirmed report of a dead device is published again with its event`() async throws {
        try await Fixture.withStore { store, pool in
            let claim = Fixture.claim("a", "0a0b0c0d")
            try await store.register([claim])
            _ = try await Self.relay(pool, Self.bus()).publishDue()
            let word = Invalidation(
                app: Fixture.app, device: claim.device, notRegisteredSince: .now + .seconds(60), reason: "Unregistered")
            _ = try await store.deactivate([word])
            let bus = InMemoryBus(
                topology: Topology(apps: [Fixture.app], reports: ReportConsumers(upstreams: [Fixture.app])))
            let relay = OutboxRelay(
                service: "token-registry", store: OutboxStore(pool), bus: bus, isReported: { _ in true },
                logger: .silent)
            bus.answer(publishesTo: .devices, with: [.confirmed, .nacked])
            #expect(try await relay.publishDue())
            #expect(try await Self.waiting(pool) == 1)
            #expect(try await relay.publishDue() == false)
            #expect(bus.messages(in: UpstreamQueue.name(of: Fixture.app)).count == 1)
        }
    }

    @Test func `unconfirmed events stay, and are published again with the same id`() async throws {
        try await Fixture.withStore { store, pool in
            for token in ["01", "02", "03"] { try await store.register([Fixture.claim("a", token)]) }
            let bus = Self.bus()
            bus.answer(
                publishesTo: .devices, with: [.nacked, .confirmed, .returned(code: 403, text: "ACCESS_REFUSED")])
            #expect(try await Self.relay(pool, bus).publishDue())
            #expect(try await Self.waiting(pool) == 2)
            bus.close()
            await #expect(throws: (any Error).self) { _ = try await Self.relay(pool, bus).publishDue() }
            #expect(try await Self.waiting(pool) == 2)

            // Published, but the process stops before it deletes the rows.
            let dying = Self.bus()
            let store = OutboxStore(pool)
            var first: [UUID] = []
            for _ in 0..<2 {
                let seen = Seen()
                await #expect(throws: Seen.Died.self) {
                    _ = try await store.drain { announcements in
                        await seen.note(announcements.map(\.event.trace.id))
                        throw Seen.Died()
                    }
                }
                if first.isEmpty { first = await seen.ids } else { #expect(await seen.ids == first) }
            }
            #expect(try await Self.relay(pool, dying).publishDue() == false)
            #expect(try Self.events(dying).map(\.trace.id) == first)
        }
    }

    private actor Seen {
        struct Died: Error {}
        private(set) var ids: [UUID] = []
        func note(_ ids: [UUID]) { self.ids += ids }
    }

    @Test func `the age of the oldest waiting event is measured`() async throws {
        try await Fixture.withStore { store, pool in
            #expect(try await OutboxStore(pool).wait() == nil)
            try await store.register([Fixture.claim("a", "01")])
            try await pool.execute("UPDATE registry.outbox SET at = at - interval '1 hour'")
            let wait = try #require(try await OutboxStore(pool).wait())
            #expect(wait >= .seconds(3600) && wait < .seconds(3700))
        }
    }

    @Test func `an event without a bound queue is deleted`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01")])
            #expect(try await Self.relay(pool, Self.bus(isHeard: false)).publishDue() == false)
            #expect(try await Self.waiting(pool) == 0)
        }
    }

    @Test func `many relays publish each event once during registrations`() async throws {
        try await Fixture.withStore { store, pool in
            let bus = Self.bus()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<3 {
                    group.addTask {
                        for token in 0..<200 {
                            try await store.register([
                                Fixture.claim("u\(token)", String(format: "%02x%04x", number, token))
                            ])
                        }
                    }
                    group.addTask {
                        try await eventually("all have left", within: .seconds(60)) {
                            _ = try await Self.relay(pool, bus).publishDue()
                            return bus.published.count >= 600
                        }
                    }
                }
                try await group.waitForAll()
            }
            let ids = try Self.events(bus).map(\.trace.id)
            #expect(ids.count == 600 && Set(ids).count == 600)
        }
    }

    @Test func `a rolled back change has no event`() async throws {
        struct Abandoned: Error {}
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01")])
            await #expect(throws: Abandoned.self) {
                try await pool.transaction { transaction in
                    try await transaction.execute(
                        "UPDATE registry.registration SET state = 'signed-out', state_reason = 'x'")
                    throw Abandoned()
                }
            }
            #expect(try await Self.waiting(pool) == 1)
        }
    }
}
