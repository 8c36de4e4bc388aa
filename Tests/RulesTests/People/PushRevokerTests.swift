import AMQP
import Foundation
import HTTPTypes
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RuleLanguage
@testable import Rules

/// A preference that is switched off, or a mute that is set, after the decision and before the delivery.
@Suite(.timeLimit(.minutes(3))) struct PushRevokerTests {
    static let rules = DecisionStoreTests.rules
        .replacing(
            "  chat: { about: Messages }", with: "  chat: { about: Messages }\n  alarm: { about: Help, critical: true }"
        )
        .replacing("caps: hourly, ", with: "")

    private let bus = InMemoryBus(apps: [RulesHTTP.app])

    private func revoker(_ http: RulesHTTP, on other: InMemoryBus? = nil) -> PushRevoker {
        PushRevoker(
            service: "rules", store: PreferenceChangeStore(pool: http.pool),
            currentRules: CurrentRules(http.fixture.ruleSets),
            bus: other ?? bus, now: { http.clock.now }, logger: .silent)
    }

    /// Revokes until no change is left. Transactions of other databases hold changes back as well.
    private func revokeAll(_ http: RulesHTTP, by revoker: PushRevoker? = nil) async throws {
        let revoker = revoker ?? self.revoker(http)
        try await eventually("the changes to be taken", within: .seconds(30)) {
            try await revoker.revokeDue()
            return try await RulesDatabase.count("rules.preference_change", http.pool) == 0
        }
    }

    /// Decides about events to a user. The database's clock compares ages, so decisions are dated by it.
    private func publish(_ http: RulesHTTP, _ ids: [String], room: Int = 1, age: Duration = .zero) async throws {
        for id in ids {
            #expect(try await http.fixture.handleEvent(id, users: "[1,2]", room: room).joined().sorted() == ["1", "2"])
            try await http.pool.execute(
                """
                UPDATE rules.decision SET decided_at = clock_timestamp() - make_interval(secs => \(Int(age.components.seconds)))
                FROM rules.event WHERE event.key = decision.event AND event.id = \(id)
                """)
        }
    }

    private func notifications(_ http: RulesHTTP, _ ids: [String], user: String = "1") async throws -> Set<UUID> {
        Set(
            try await http.pool.query(
                """
                SELECT notification FROM rules.decision JOIN rules.event ON event.key = decision.event
                WHERE decision.user_id = \(user) AND event.id = ANY(\(ids))
                """
            ).map { try $0.decode(UUID.self, at: 0) })
    }

    /// The notifications that the stream of revocations names.
    private func revoked() throws -> Set<UUID> {
        var ids: Set<UUID> = []
        for message in bus.messages(in: StreamName.senderRevocations.rawValue) {
            ids.formUnion(try NotificationRevocation.decode(wireBody: message.body).notifications)
        }
        return ids
    }

    private func change(_ http: RulesHTTP, _ patch: JSONValue, user: String = "1") async throws {
        #expect(try await http.send(.patch, "/v1/preferences", patch, user: user).status == 200)
    }

    @Test(
        arguments: [
            ["types": ["chat": false]], ["types": ["chat": ["push": false]]], ["enabled": false],
            ["channels": ["push": false]], ["mutes": ["room/1": [:]]],
        ] as [JSONValue]
    ) func `a change that refuses decided pushes revokes them for that user alone, and the inbox keeps them`(
        _ patch: JSONValue
    ) async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            try await publish(http, ["a", "b"])
            try await change(http, patch)
            try await revokeAll(http)
            #expect(try await revoked() == notifications(http, ["a", "b"]))
            #expect(try await http.fixture.inbox() == 2)
            // A repeat finds no change.
            try await revoker(http).revokeDue()
            #expect(bus.messages(in: StreamName.senderRevocations.rawValue).count == 1)
        }
    }

    @Test func `a mute revokes its thread alone, and a change that refuses nothing revokes nothing`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            try await publish(http, ["a"], room: 1)
            try await publish(http, ["b"], room: 2)
            try await change(http, ["mutes": ["room/2": [:]], "language": "de"])
            try await revokeAll(http)
            #expect(try await revoked() == notifications(http, ["b"]))
            try await change(http, ["digest_time": "08:00"], user: "2")
            try await revokeAll(http)
            #expect(try await revoked() == notifications(http, ["b"]))
        }
    }

    @Test func `a push with an outcome is revoked for an hour only, and none after a week`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            try await publish(http, ["young"])
            try await publish(http, ["old", "waits"], age: .seconds(7200))
            try await publish(http, ["ancient"], age: .seconds(8 * 86_400))
            for notification in try await notifications(http, ["young", "old"]) {
                try await http.pool.execute(
                    "INSERT INTO rules.outcome VALUES (\(notification), NULL, 'accepted', 'apns', NULL, now())")
            }
            try await change(http, ["enabled": false])
            try await revokeAll(http)
            #expect(try await revoked() == notifications(http, ["young", "waits"]))
        }
    }

    @Test func `decided pushes are revoked at once, and one whose decision commits later is too`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            try await publish(http, ["decided", "late"])
            let late = try await notifications(http, ["late"])
            try await http.pool.execute(
                "UPDATE rules.decision SET answer = 'hold' WHERE notification = ANY(\(Array(late)))")
            let revoker = revoker(http)
            try await http.pool.transaction { transaction in
                // Stands for a decision: it has a transaction id of before the change, and ends after it.
                try await transaction.execute(
                    "UPDATE rules.decision SET answer = 'push' WHERE notification = ANY(\(Array(late)))")
                try await change(http, ["enabled": false])
                try await revoker.revokeDue()
                #expect(try await revoked() == notifications(http, ["decided"]))
                #expect(try await RulesDatabase.count("rules.preference_change", http.pool) == 1)
            }
            try await revokeAll(http, by: revoker)
            #expect(try await revoked() == notifications(http, ["decided", "late"]))
            #expect(bus.messages(in: StreamName.senderRevocations.rawValue).count == 2, "each push is revoked once")
        }
    }

    @Test func `a revocation that the broker did not confirm is published again`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            try await publish(http, ["a"])
            try await change(http, ["enabled": false])
            // Without the stream's binding the broker returns the message.
            var topology = Topology(apps: [RulesHTTP.app])
            topology.bindings.removeAll { $0.queue == StreamName.senderRevocations.rawValue }
            let deaf = InMemoryBus(topology: topology)
            try await eventually("the change to be taken", within: .seconds(30)) {
                try await revoker(http, on: deaf).revokeDue()
                let lent: Int = try await http.pool.query(
                    "SELECT count(*) FROM rules.preference_change WHERE due_at > clock_timestamp()"
                ).single()
                return lent == 1
            }
            #expect(try revoked() == [])
            try await http.pool.execute("UPDATE rules.preference_change SET due_at = clock_timestamp()")
            try await revokeAll(http)
            #expect(try await revoked() == notifications(http, ["a"]))
        }
    }

    @Test func `given preferences that are written again unchanged, then no change is noted`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            try await publish(http, ["a"])
            try await change(http, ["enabled": false, "mutes": ["room/1": [:]]])
            try await revokeAll(http)
            for patch in [["enabled": false], ["mutes": ["room/1": [:]]], [:]] as [JSONValue] {
                try await change(http, patch)
                #expect(try await RulesDatabase.count("rules.preference_change", http.pool) == 0)
            }
            #expect(bus.messages(in: StreamName.senderRevocations.rawValue).count == 1)
        }
    }

    @Test func `given a preference that is switched on and off, then each push is revoked once`() async throws {
        try await RulesHTTP.with(Self.rules) { (http: RulesHTTP) async throws in
            try await publish(http, ["a", "b"])
            let revoker = revoker(http)
            for isOn in [false, true, false, true] {
                try await change(http, ["enabled": .bool(isOn)])
                try await revokeAll(http, by: revoker)
            }
            #expect(bus.messages(in: StreamName.senderRevocations.rawValue).count == 1)
            try await publish(http, ["c"])
            try await change(http, ["enabled": false])
            try await revokeAll(http, by: revoker)
            #expect(bus.messages(in: StreamName.senderRevocations.rawValue).count == 2)
            #expect(try await revoked() == notifications(http, ["a", "b", "c"]))
        }
    }
}
