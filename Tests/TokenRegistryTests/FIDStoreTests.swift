import Foundation
import Logging
import Postgres
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// Fallback tokens, suspected FIDs and halted cohorts on a real Postgres.
@Suite(.timeLimit(.minutes(3))) struct FIDStoreTests {
    typealias Fixture = StoreFixture

    private let phone = RegistrationStore.Installation(app: Fixture.app, id: InstallationID(rawValue: "phone")!)
    private let user = UserID(rawValue: "a")!

    private func fid(
        _ text: String = "f", user: String = "a", version: String? = nil, on phone: String = "phone"
    ) -> RegistrationRequest {
        var claim = Fixture.claim(user, text, .fcm, kind: .fid, on: phone)
        claim.appVersion = version
        return claim
    }

    private func token(_ text: String = "abc:t", user: String = "a", on phone: String = "phone") -> RegistrationRequest
    {
        Fixture.claim(user, text, .fcm, kind: .fcmToken, on: phone)
    }

    /// An installation that moved from a token to a FID alone.
    private func moved(_ store: RegistrationStore) async throws {
        _ = try await store.replace(phone, of: user, with: [token()])
        _ = try await store.replace(phone, of: user, with: [fid(version: "4.2")])
    }

    /// Moves the times of all registrations into the past.
    private func age(_ pool: PostgresPool, by time: Duration) async throws {
        try await pool.transaction { transaction in
            try await transaction.execute("SET LOCAL session_replication_role = replica")
            try await transaction.execute(
                """
                UPDATE registry.registration SET registered_at = registered_at - \(time)::interval,
                    state_changed_at = state_changed_at - \(time)::interval,
                    suspected_at = suspected_at - \(time)::interval,
                    fallback_until = fallback_until - \(time)::interval
                """)
        }
    }

    private func devices(_ store: RegistrationStore) async throws -> [Registration] {
        try await store.devices(of: [Fixture.user("a")])[0]
    }

    @Test func `a token stays as a fallback when its installation names only a FID`() async throws {
        try await Fixture.withStore { store, _ in
            _ = try await store.replace(phone, of: user, with: [token()])
            let answer = try await store.replace(phone, of: user, with: [fid(version: "4.2")])
            #expect(answer.records.map(\.registration.token.secret) == ["f"], "the client sees only the FID")
            #expect(!answer.isNew)
            #expect(try await store.registrations(on: phone, of: user).map(\.registration.token.secret) == ["f"])
            #expect(try await store.registrations(of: Fixture.user("a")).map(\.registration.token.secret) == ["f"])
            let used = try await devices(store).withFallbacks()
            #expect(used.map(\.token.secret) == ["f"] && used.map(\.fallback?.secret) == ["abc:t"])
            #expect(used.map(\.appVersion) == ["4.2"])
            // Both have the client's current device data, which filters use.
            let history = try await store.records(of: Fixture.user("a"))
            #expect(history.map(\.appVersion) == ["4.2", "4.2"])
        }
    }

    @Test func `after the provider invalidates the FID, the token is used alone`() async throws {
        try await Fixture.withStore { store, _ in
            try await moved(store)
            let word = Invalidation(
                app: Fixture.app, device: fid().device, notRegisteredSince: .now, reason: "UNREGISTERED")
            #expect(try await store.deactivate([word]) == [fid().device])
            let used = try await devices(store).withFallbacks()
            #expect(used.map(\.token.secret) == ["abc:t"] && used.map(\.kind) == [.fcmToken])
            // A new FID of the same installation has the same fallback.
            _ = try await store.replace(phone, of: user, with: [fid("g")])
            #expect(try await devices(store).withFallbacks().map(\.fallback?.secret) == ["abc:t"])
        }
    }

    @Test func `a token that is named again is no longer a fallback`() async throws {
        try await Fixture.withStore { store, _ in
            try await moved(store)
            _ = try await store.replace(phone, of: user, with: [token(), fid()])
            #expect(try await store.registrations(on: phone, of: user).count == 2)
        }
    }

    @Test func `a fallback ends after 30 days, unless it is the only working registration`() async throws {
        for endsFID in [false, true] {
            try await Fixture.withStore { store, pool in
                try await moved(store)
                if endsFID {
                    let word = Invalidation(
                        app: Fixture.app, device: fid().device, notRegisteredSince: .now, reason: "UNREGISTERED")
                    _ = try await store.deactivate([word])
                }
                try await age(pool, by: .seconds(29 * 86_400))
                _ = try await SweepStore(pool).advance(now: .now)
                #expect(try await devices(store).contains { $0.kind == .fcmToken })
                try await age(pool, by: .seconds(2 * 86_400))
                _ = try await SweepStore(pool).advance(now: .now)
                #expect(try await devices(store).map(\.kind) == (endsFID ? [.fcmToken] : [.fid]))
            }
        }
    }

    @Test func `a fallback stays after 30 days while its FID is suspected`() async throws {
        try await Fixture.withStore { store, pool in
            try await moved(store)
            try await age(pool, by: .seconds(31 * 86_400))
            _ = try await FIDStore(pool).suspect([
                .init(app: Fixture.app, device: fid().device, at: .now, reason: "UNREGISTERED")
            ])
            _ = try await SweepStore(pool).advance(now: .now)
            #expect(try await devices(store).contains { $0.kind == .fcmToken })
        }
    }

    @Test(arguments: [
        "signs out of the FID", "leaves the installation", "loses the FID", "loses the phone", "drops both",
    ])
    func `a fallback never outlives its user's FID`(way: String) async throws {
        try await Fixture.withStore { store, _ in
            try await moved(store)
            switch way {
            case "signs out of the FID": try await store.unregister([Fixture.claim("a", "f", .fcm, kind: .fid)])
            case "leaves the installation": try await store.end(phone, of: user)
            case "loses the FID": try await store.register([Fixture.claim("b", "f", .fcm, kind: .fid)])
            case "loses the phone":
                try await store.register([Fixture.claim("b", "x", .fcm, kind: .fcmWeb, on: "phone")])
            default:
                _ = try await store.replace(phone, of: user, with: [Fixture.claim("a", "01", on: "phone")])
            }
            #expect(try await devices(store).filter { $0.provider == .fcm }.isEmpty)
            // Pushes in transit to the token are revoked, as for every registration that its user leaves.
            let rows = try await store.database.query(
                "SELECT revokes FROM registry.outbox WHERE device_id = \(token().device) AND revokes IS NOT NULL")
            #expect(!rows.isEmpty)
        }
    }

    @Test func `a suspected FID is not used for a day, and ends when refused again`() async throws {
        try await Fixture.withStore { store, pool in
            try await moved(store)
            let fids = FIDStore(pool)
            func suspect() async throws -> FIDStore.Answer {
                try await fids.suspect([
                    .init(app: Fixture.app, device: fid().device, at: .now, reason: "UNREGISTERED")
                ])
            }
            func used() async throws -> [RegistrationKind] {
                try await devices(store).withFallbacks().map(\.kind)
            }
            #expect(try await suspect() == FIDStore.Answer())
            #expect(try await used() == [.fcmToken])
            try await age(pool, by: .seconds(86_000))
            #expect(try await suspect().ended.isEmpty)
            #expect(try await used() == [.fcmToken])
            try await age(pool, by: .seconds(500))
            #expect(try await used() == [.fid], "the day counts from the first refusal")
            #expect(try await suspect().ended == [fid().device])
            #expect(try await used() == [.fcmToken])
            let history = try await store.records(of: Fixture.user("a"))
            let ended = history.first { $0.registration.kind == .fid }
            #expect(ended?.state == .invalidated && ended?.reason == "UNREGISTERED")
        }
    }

    @Test func `#16429: a registration token sent as a FID is never ended by suspicion`() async throws {
        try await Fixture.withStore { store, pool in
            _ = try await store.replace(phone, of: user, with: [fid("abc:APA91bOld")])
            for _ in 0..<3 {
                let answer = try await FIDStore(pool).suspect([
                    .init(
                        app: Fixture.app, device: fid("abc:APA91bOld").device, at: .now, reason: "UNREGISTERED")
                ])
                #expect(answer.ended.isEmpty)
                #expect(try await devices(store).withFallbacks().map(\.kind) == [.fcmToken])
                try await age(pool, by: .seconds(90_000))
            }
        }
    }

    /// Simulates the rollout of a build with unregistered FIDs: its tokens are used, and another version's FIDs.
    @Test func `a version whose FIDs are refused is halted for a day or until an operator ends it`()
        async throws
    {
        try await Fixture.withStore { store, pool in
            let fids = FIDStore(pool)
            for number in 0..<40 {
                let version = number < 30 ? "5.0" : "4.9"
                try await store.register([
                    fid("fid-\(number)", user: "u\(number)", version: version, on: "phone-\(number)"),
                    token("t:\(number)", user: "u\(number)", on: "phone-\(number)"),
                ])
            }
            func suspect(_ number: Int) async throws -> [FIDStore.Halt] {
                let device = fid("fid-\(number)").device
                return try await fids.suspect([
                    .init(app: Fixture.app, device: device, at: .now, reason: "UNREGISTERED")
                ]).halted
            }
            for number in 0..<4 { #expect(try await suspect(number).isEmpty) }
            // Several devices of one user count once.
            try await store.register([
                fid("fid-x", user: "u0", version: "5.0", on: "tablet"), token("t:x", user: "u0", on: "tablet"),
            ])
            let again = FIDStore.RefusedFID(
                app: Fixture.app, device: fid("fid-x").device, at: .now, reason: "UNREGISTERED")
            #expect(try await fids.suspect([again]).halted.isEmpty)
            let cohort = FIDPreference.Cohort(app: Fixture.app, version: "5.0")
            #expect(try await suspect(4) == [.init(cohort: cohort, suspected: 5)])
            #expect(try await suspect(5).isEmpty, "the halt is reported once")
            let halts = FIDHalts(store: fids, apps: [Fixture.app], logger: Logger(label: "test"))
            try await halts.refresh()
            #expect(halts.preference.halted == [cohort])
            func kinds(_ number: Int) async throws -> [RegistrationKind] {
                try await store.devices(of: [Fixture.user("u\(number)")])[0]
                    .withFallbacks(halts.preference).map(\.kind)
            }
            #expect(try await kinds(20) == [.fcmToken])
            #expect(try await kinds(35) == [.fid])
            try await pool.execute("UPDATE registry.fid_halt SET until = statement_timestamp()")
            try await halts.refresh()
            #expect(halts.preference.halted.isEmpty)
            #expect(try await kinds(20) == [.fid])
        }
    }

    @Test func `a few refused FIDs among many of a version halt nothing`() async throws {
        try await Fixture.withStore { store, pool in
            let claims = (0..<120).map { fid("fid-\($0)", user: "u\($0)", version: "5.0", on: "p\($0)") }
            try await store.register(claims)
            let suspicions = (0..<6).map {
                FIDStore.RefusedFID(
                    app: Fixture.app, device: fid("fid-\($0)").device, at: .now, reason: "UNREGISTERED")
            }
            #expect(try await FIDStore(pool).suspect(suspicions).halted.isEmpty)
            #expect(try await FIDStore(pool).halts().halted.isEmpty)
        }
    }

    @Test func `a registration is established after a day with its user`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([token()])
            #expect(try await devices(store).map(\.isEstablished) == [false])
            try await age(pool, by: .seconds(86_400))
            // A repeat at an app launch keeps the registration established.
            try await store.register([token()])
            #expect(try await devices(store).map(\.isEstablished) == [true])
            try await store.register([token(user: "b")])
            try await store.register([token()])
            #expect(try await devices(store).map(\.isEstablished) == [false])
            // An import names the time of each registration.
            var claim = token("abc:imported", on: "tablet")
            claim.at = .now + .seconds(-90_000)
            try await store.register([claim])
            #expect(try await devices(store).filter(\.isEstablished).map(\.token.secret) == ["abc:imported"])
        }
    }
}
