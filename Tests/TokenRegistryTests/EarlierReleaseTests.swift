import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// During a rollout, the previous release writes to the same table without the new columns.
@Suite(.timeLimit(.minutes(2))) struct EarlierReleaseTests {
    typealias Fixture = StoreFixture

    /// The upsert of the release with migration 1.
    private static func upsert(_ claim: RegistrationRequest) -> SQL {
        """
        INSERT INTO registry.registration AS r
            (device_id, app, user_id, provider, environment, token, registered_at, state_changed_at)
        VALUES (\(claim.device), \(claim.app.rawValue), \(claim.user.rawValue), \(claim.provider.rawValue),
            \(claim.environment.rawValue), \(claim.token.secret), clock_timestamp(), clock_timestamp())
        ON CONFLICT (device_id) DO UPDATE SET
            user_id = excluded.user_id, registered_at = greatest(r.registered_at, excluded.registered_at),
            state = 'active', state_reason = NULL, state_changed_at = excluded.state_changed_at
        """
    }

    private static func end(_ claim: RegistrationRequest, _ state: String, _ reason: String) -> SQL {
        """
        UPDATE registry.registration
        SET state = \(state), state_reason = \(reason), state_changed_at = clock_timestamp()
        WHERE device_id = \(claim.device)
        """
    }

    @Test func `a registration of the previous release has the default kind, and gets an event`() async throws {
        try await Fixture.withStore { store, pool in
            try await pool.execute(Self.upsert(Fixture.claim("a", "01")))
            try await pool.execute(Self.upsert(Fixture.claim("a", "02", .fcm)))
            let devices = try await store.devices(of: [Fixture.user("a")])[0]
            #expect(Set(devices.map(\.kind)) == [.alert, .fcmToken])
            let kinds = Mutexed<[RegistrationKind?]>([])
            _ = try await OutboxStore(pool).drain { announcements in
                await kinds.set(announcements.map { $0.event.device?.kind })
                return .init(numbers: announcements.map(\.number))
            }
            #expect(await kinds.value == [.alert, .fcmToken])
        }
    }

    private actor Mutexed<Value: Sendable> {
        private(set) var value: Value
        init(_ value: Value) { self.value = value }
        func set(_ value: Value) { self.value = value }
    }

    @Test func `an end by the previous release rejects older registrations, not newer ones`() async throws {
        try await Fixture.withStore { store, pool in
            for (token, state) in [("01", "signed-out"), ("02", "invalidated"), ("03", "replaced"), ("04", "evicted")] {
                let claim = Fixture.claim("a", token)
                try await pool.execute(Self.upsert(claim))
                let at = try #require(
                    try await store.records(of: Fixture.user("a")).first { $0.registration.device == claim.device }
                ).registration.registeredAt
                try await pool.execute(Self.end(claim, state, "as before"))
                #expect(try await store.register([Fixture.claim("a", token, at: at + .milliseconds(-1))]) == [])
                try await store.register([claim])
            }
            #expect(try await store.tokens(of: "a") == ["01", "02", "03", "04"])
        }
    }

    @Test func `the previous release works with rows of this one`() async throws {
        try await Fixture.withStore { store, pool in
            let claim = Fixture.claim("a", "01", kind: .voip, on: "phone")
            try await store.register([claim])
            try await store.unregister([claim])
            try await pool.execute(Self.upsert(claim))
            let devices = try await store.devices(of: [Fixture.user("a")])[0]
            #expect(devices.map(\.kind) == [.voip])
            try await store.unregister([claim])
            #expect(try await store.tokens(of: "a") == [])
        }
    }
}
