import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// Commands have a time. A late or repeated command does not undo a newer change.
@Suite(.timeLimit(.minutes(2))) struct LateCommandTests {
    typealias Fixture = StoreFixture
    private let now = Timestamp.now

    private func ago(_ seconds: Int) -> Timestamp { now + .seconds(-seconds) }

    @Test func `a redelivered registration does not revive a device that signed out since`() async throws {
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "01", at: ago(60))
            #expect(try await store.register([claim]) == [claim.device])
            #expect(try await store.register([claim]) == [claim.device])
            try await store.unregister([Fixture.claim("a", "01", at: ago(30))])
            #expect(try await store.register([claim]) == [])
            #expect(try await store.tokens(of: "a") == [])
            try await store.register([Fixture.claim("a", "01", at: ago(29))])
            #expect(try await store.tokens(of: "a") == ["01"])
        }
    }

    @Test func `a redelivered sign-out does not end a newer registration`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "01", at: ago(60))])
            for _ in 0..<2 {
                try await store.unregister([Fixture.claim("a", "01", at: ago(30))])
                try await store.register([Fixture.claim("a", "01", at: ago(20))])
            }
            #expect(try await store.tokens(of: "a") == ["01"])
        }
    }

    @Test func `a sign-out rejects an older registration that arrives later`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "01", at: ago(60))])
            try await store.unregister([Fixture.claim("a", "01", at: ago(50)), Fixture.claim("a", "01", at: ago(10))])
            #expect(try await store.register([Fixture.claim("a", "01", at: ago(20))]) == [])
        }
    }

    @Test func `one user's sign-out does not reject another user's registration`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "01", at: ago(60))])
            try await store.unregister([Fixture.claim("a", "01", at: ago(10))])
            try await store.register([Fixture.claim("b", "01", at: ago(20))])
            #expect(try await store.tokens(of: "b") == ["01"])
        }
    }

    @Test func `a token belongs to the latest registration's user, in any order of arrival`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("b", "01", at: ago(10))])
            try await store.register([Fixture.claim("a", "01", at: ago(20))])
            #expect(try await store.tokens(of: "a") == [])
            #expect(try await store.tokens(of: "b") == ["01"])
        }
    }

    @Test func `a registration overtaken by its sign-out is void, also for an unknown device`()
        async throws
    {
        try await Fixture.withStore { store, _ in
            try await store.unregister([Fixture.claim("a", "01", at: ago(30))])
            #expect(try await store.register([Fixture.claim("a", "01", at: ago(60))]) == [])
            #expect(try await store.tokens(of: "a") == [])
            // The sign-out rejects neither earlier registrations of other users nor later ones of the same user.
            try await store.register([Fixture.claim("b", "01", at: ago(40))])
            #expect(try await store.tokens(of: "b") == ["01"])
            try await store.register([Fixture.claim("a", "01", at: ago(20))])
            #expect(try await store.tokens(of: "a") == ["01"])
        }
    }

    @Test func `a late sign-out stores nothing of an erased user`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.erase(Fixture.user("a"))
            try await store.unregister([Fixture.claim("a", "01", at: ago(30))])
            #expect(try await pool.query("SELECT device_id FROM registry.registration").isEmpty)
        }
    }

    @Test func `a registration in transit at the token's invalidation revives it, an older one does not`()
        async throws
    {
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "01", at: ago(60))
            try await store.register([claim])
            let word = Invalidation(
                app: Fixture.app, device: claim.device, notRegisteredSince: ago(30), reason: "Unregistered")
            #expect(try await store.deactivate([word]) == [claim.device])
            #expect(try await store.register([Fixture.claim("a", "01", at: ago(40))]) == [])
            #expect(try await store.register([Fixture.claim("a", "01", at: ago(20))]) == [claim.device])
        }
    }

    @Test func `a clock that is ahead does not block later changes`() async throws {
        try await Fixture.withStore { store, _ in
            let claim = Fixture.claim("a", "01", at: now + .seconds(3600))
            try await store.register([claim])
            try await store.unregister([Fixture.claim("a", "01")])
            #expect(try await store.tokens(of: "a") == [])
            try await store.register([Fixture.claim("a", "01")])
            let ahead = Invalidation(
                app: Fixture.app, device: claim.device, notRegisteredSince: now + .seconds(3600), reason: "Unregistered"
            )
            #expect(try await store.deactivate([ahead]) == [claim.device])
            try await store.register([Fixture.claim("a", "01")])
            #expect(try await store.tokens(of: "a") == ["01"])
        }
    }

    @Test func `an evicted device returns by a new registration, not by a redelivered one`()
        async throws
    {
        try await Fixture.withStore(devicesPerUser: 2) { store, _ in
            let first = Fixture.claim("a", "01", at: ago(60))
            try await store.register([first])
            for number in 2...3 { try await store.register([Fixture.claim("a", "0\(number)", at: ago(30 - number))]) }
            #expect(try await store.tokens(of: "a") == ["02", "03"])
            #expect(try await store.register([first]) == [])
            try await store.register([Fixture.claim("a", "01")])
            #expect(try await store.tokens(of: "a") == ["01", "03"])
        }
    }
}
