import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

@Suite(.timeLimit(.minutes(2))) struct ErasureTests {
    typealias Fixture = StoreFixture

    @Test func `an erased user has no devices, and only a tombstone is kept`() async throws {
        try await Fixture.withStore { store, pool in
            var claim = Fixture.claim("a", "01", on: "phone")
            (claim.locale, claim.timeZone, claim.appVersion) = ("de-CH", "Europe/Zurich", "4.2")
            try await store.register([claim, Fixture.claim("a", "02"), Fixture.claim("b", "03")])
            try await store.unregister([Fixture.claim("a", "02")])
            #expect(try await store.erase(Fixture.user("a")) == 2)
            #expect(try await store.erase(Fixture.user("a")) == 0)
            #expect(try await store.tokens(of: "a") == [])
            #expect(try await store.tokens(of: "b") == ["03"])
            let kept = try await pool.query(
                """
                SELECT count(*) FROM registry.registration
                WHERE user_id = 'a' AND (state <> 'erased'
                    OR coalesce(token, installation, scope, topic, locale, time_zone, app_version) IS NOT NULL)
                """
            ).single(Int.self)
            #expect(kept == 0)
        }
    }

    @Test func `a registration from before the erasure that arrives later is void`() async throws {
        try await Fixture.withStore { store, _ in
            let before = Timestamp.now + .seconds(-60)
            try await store.erase(Fixture.user("a"))
            #expect(try await store.register([Fixture.claim("a", "01", at: before)]) == [])
            try await store.register([Fixture.claim("a", "01")])
            #expect(try await store.tokens(of: "a") == ["01"])
        }
    }

    @Test func `a user of the same name in another app is not erased`() async throws {
        let other = try #require(AppID(rawValue: "hide-and-seek"))
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "01"), Fixture.claim("a", "01", app: other)])
            try await store.erase(Fixture.user("a"))
            #expect(try await store.tokens(of: "a", app: other) == ["01"])
        }
    }

    @Test func `the token of an erased user may go to another user`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "01")])
            try await store.erase(Fixture.user("a"))
            try await store.register([Fixture.claim("b", "01")])
            #expect(try await store.tokens(of: "b") == ["01"])
        }
    }

    /// Runs eight writers concurrently with the erasure of their user, for several users.
    ///
    /// - Parameter write: writes for the user. Its number in hexadecimal digits is unique.
    private static func race(
        _ store: RegistrationStore, _ write: @escaping @Sendable (_ user: String, _ number: String) async throws -> Void
    ) async throws {
        for round in 0..<15 {
            let user = "u\(round)"
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask { try await write(user, String(format: "%02x%04x", number, round)) }
                }
                group.addTask { try await store.erase(Fixture.user(user)) }
                try await group.waitForAll()
            }
        }
    }

    @Test func `an erasure concurrent with registrations leaves only newer ones`() async throws {
        try await Fixture.withStore { store, pool in
            try await Self.race(store) { user, number in try await store.register([Fixture.claim(user, number)]) }
            let wrong = try await pool.query(
                """
                SELECT count(*) FROM registry.registration r JOIN registry.erasure e USING (app, user_id)
                WHERE (r.state = 'active') <> (r.registered_at > e.erased_at)
                """
            ).single(Int.self)
            #expect(wrong == 0)
        }
    }

    @Test func `an erasure concurrent with joins leaves only newer memberships`() async throws {
        try await Fixture.withStore { store, pool in
            let memberships = MembershipStore(pool)
            try await Self.race(store) { user, number in
                let topic = UserGroup.topic(AudienceFixture.name(number))
                try await memberships.apply([AudienceFixture.member(user, topic)])
            }
            let wrong = try await pool.query(
                """
                SELECT count(*) FROM registry.membership m JOIN registry.erasure e USING (app, user_id)
                WHERE m.at <= e.erased_at
                """
            ).single(Int.self)
            #expect(wrong == 0)
        }
    }
}
