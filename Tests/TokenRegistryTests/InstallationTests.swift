import Foundation
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// An installation (one app on one device) has one user and one token of a kind.
@Suite(.timeLimit(.minutes(2))) struct InstallationTests {
    typealias Fixture = StoreFixture

    private func states(_ store: RegistrationStore, _ user: String) async throws -> [String: String] {
        let history = try await store.records(of: Fixture.user(user))
        return Dictionary(
            uniqueKeysWithValues: history.map {
                ($0.registration.token.secret, "\($0.state.rawValue): \($0.reason ?? "")")
            })
    }

    @Test func `a new token of an installation replaces the earlier one`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "01", on: "phone")])
            try await store.register([Fixture.claim("a", "02", on: "phone"), Fixture.claim("a", "03", on: "tablet")])
            #expect(try await store.tokens(of: "a") == ["02", "03"])
            #expect(try await states(store, "a")["01"] == "replaced: the token changed")
            try await store.register([Fixture.claim("a", "01", on: "phone")])
            #expect(try await store.tokens(of: "a") == ["01", "03"])
        }
    }

    @Test func `tokens of other kinds and scopes coexist`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([
                Fixture.claim("a", "01", on: "phone"), Fixture.claim("a", "02", kind: .voip, on: "phone"),
                Fixture.claim("a", "03", kind: .liveActivity, on: "phone", scope: "match-1"),
                Fixture.claim("a", "04", kind: .liveActivity, on: "phone", scope: "match-2"),
                Fixture.claim("a", "05", .fcm, kind: .fcmToken, on: "phone"),
                Fixture.claim("a", "06", .fcm, kind: .fid, on: "phone"),
            ])
            #expect(try await store.tokens(of: "a") == ["01", "02", "03", "04", "05", "06"])
            try await store.register([
                Fixture.claim("a", "07", kind: .voip, on: "phone"),
                Fixture.claim("a", "08", kind: .liveActivity, on: "phone", scope: "match-2"),
            ])
            #expect(try await store.tokens(of: "a") == ["01", "03", "05", "06", "07", "08"])
        }
    }

    @Test func `a sign-out from an installation also covers registrations that had ended`() async throws {
        try await Fixture.withStore { store, _ in
            let installation = RegistrationStore.Installation(
                app: Fixture.app, id: InstallationID(rawValue: "phone")!)
            let user = Fixture.user("a").user
            let before = Timestamp.now + .seconds(-60)
            // Dropped before a later registration that is still in transit.
            try await store.register([Fixture.claim("a", "01", on: "phone", at: before + .seconds(-60))])
            try await store.unregister([Fixture.claim("a", "01", at: before + .seconds(-30))])
            try await store.end(installation, of: user)
            try await store.register([Fixture.claim("a", "01", on: "phone", at: before)])
            #expect(try await store.tokens(of: "a").isEmpty)
            #expect(try await states(store, "a")["01"] == "signed-out: unregistered")
            // A registration from after the sign-out is stored.
            try await store.register([Fixture.claim("a", "01", on: "phone")])
            #expect(try await store.tokens(of: "a") == ["01"])
        }
    }

    @Test func `a sign-in on an installation ends all registrations of other users there`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register([
                Fixture.claim("a", "01", on: "phone"), Fixture.claim("a", "02", kind: .voip, on: "phone"),
                Fixture.claim("a", "03"),
            ])
            try await store.register([Fixture.claim("b", "01", on: "phone")])
            #expect(try await store.tokens(of: "a") == ["03"])
            #expect(try await store.tokens(of: "b") == ["01"])
            #expect(try await states(store, "a")["02"] == "signed-out: another user signed in")
        }
    }

    @Test func `an installation of the same name in another app is separate`() async throws {
        let other = try #require(AppID(rawValue: "hide-and-seek"))
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "01", on: "phone")])
            try await store.register([Fixture.claim("b", "02", app: other, on: "phone")])
            #expect(try await store.tokens(of: "a") == ["01"])
        }
    }

    @Test func `a late token does not replace a newer one`() async throws {
        let now = Timestamp.now
        try await Fixture.withStore { store, _ in
            try await store.register([Fixture.claim("a", "02", on: "phone", at: now)])
            try await store.register([Fixture.claim("a", "01", on: "phone", at: now + .seconds(-60))])
            #expect(try await store.tokens(of: "a") == ["02"])
        }
    }

    @Test func `a batch for one installation is applied in order`() async throws {
        try await Fixture.withStore { store, _ in
            try await store.register((1...5).map { Fixture.claim("a", "0\($0)", on: "phone") })
            #expect(try await store.tokens(of: "a") == ["05"])
        }
    }

    @Test func `the device data is that of the last registration`() async throws {
        try await Fixture.withStore { store, _ in
            var claim = Fixture.claim("a", "01", on: "phone")
            (claim.locale, claim.timeZone, claim.appVersion, claim.topic) = (
                "de-CH", "Europe/Zurich", "4.2", "com.other"
            )
            try await store.register([claim])
            let record = try #require(try await store.records(of: Fixture.user("a")).first)
            #expect([record.locale, record.timeZone, record.appVersion] == ["de-CH", "Europe/Zurich", "4.2"])
            #expect(record.registration.topic == "com.other" && record.registration.installation?.rawValue == "phone")
            try await store.register([Fixture.claim("a", "01")])
            let later = try #require(try await store.records(of: Fixture.user("a")).first)
            #expect(later.locale == nil && later.registration.installation == nil && later.registration.topic == nil)
        }
    }

    @Test func `requests for a corrected environment apply to the moved registration`()
        async throws
    {
        let misplaced = Fixture.claim("a", "01", environment: .production)
        try await Fixture.withStore { store, _ in
            try await store.register([misplaced])
            #expect(try await store.correct(device: misplaced.device, of: Fixture.app, to: .development))
            try await store.register([misplaced])
            let devices = try await store.devices(of: [Fixture.user("a")])[0]
            #expect(devices.map(\.environment) == [.development])
            try await store.unregister([misplaced])
            #expect(try await store.tokens(of: "a") == [])
        }
    }
}
