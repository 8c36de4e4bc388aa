import Foundation
import Postgres
import Testing
import TestSupport

@testable import PushProtocol
@testable import RegistryStore

/// The members of each kind of audience.
@Suite(.timeLimit(.minutes(2))) struct AudienceTests {
    typealias Fixture = StoreFixture
    typealias A = AudienceFixture

    /// Ten users with a device each, `u0` with three, and one of another app.
    private static func withTen(_ body: (CampaignStore, RegistrationStore, PostgresPool) async throws -> Void)
        async throws
    {
        try await Fixture.withStore { store, pool in
            try await store.register((0..<10).map { Fixture.claim("u\($0)", "0\($0)") })
            try await store.register([Fixture.claim("u0", "aa"), Fixture.claim("u0", "bb", .fcm)])
            try await store.register([Fixture.claim("u3", "cc", app: AppID(rawValue: "other")!)])
            try await body(CampaignStore(pool), store, pool)
        }
    }

    private static let all = (0..<10).map { "0\($0)" } + ["aa", "bb"]

    @Test(arguments: [1, 2, 3, 100]) func `all devices of an app, each once, with any page size`(
        limit: Int
    ) async throws {
        try await Self.withTen { campaigns, store, _ in
            try await store.unregister([Fixture.claim("u9", "09")])
            let walk = try await A.walk(A.notification(.everyone), campaigns, limit: limit)
            #expect(walk.told == Self.all.filter { $0 != "09" })
            #expect(walk.without == [])
        }
    }

    @Test func `a topic's subscribers, also without a device, and not after leaving`() async throws {
        try await Self.withTen { campaigns, store, pool in
            let photos = UserGroup.topic(A.name("photos"))
            try await MembershipStore(pool).apply(
                [
                    A.member("u1", photos), A.member("u2", photos), A.member("nobody", photos), A.member("u3", photos),
                    A.member("u3", photos, joins: false), A.member("u4", .tag(A.name("photos"))),
                    A.member("u5", .topic(A.name("chat"))), A.member("u6", photos, app: AppID(rawValue: "other")!),
                ])
            let walk = try await A.walk(A.notification(.group(photos)), campaigns, limit: 2)
            #expect(walk.told == ["01", "02"] && walk.without == ["nobody"])
            // With a device filter, users without a device do not belong to the audience.
            let filtered = A.notification(
                .group(photos), campaign: UUID(), devices: DeviceFilter(platform: [.apple]))
            #expect(try await A.walk(filtered, campaigns).without == [])
        }
    }

    @Test func `a list in parts starts once all have arrived, in any order and with repeats`() async throws {
        try await Self.withTen { campaigns, _, pool in
            func part(_ number: Int, _ users: [String]) -> PushProtocol.Notification {
                A.notification(.users(users.map(A.user), part: number, of: 3), part: "\(number)")
            }
            for (number, users) in [(3, ["u1", "u7"]), (1, ["u1", "u2"]), (3, ["u1", "u7"])] {
                let notification = part(number, users)
                #expect(try await campaigns.open(notification, to: notification.audience!) == [])
            }
            #expect(try await campaigns.campaign(A.campaign) == nil)
            let walk = try await A.walk(part(2, ["nobody", "u0"]), campaigns)
            #expect(walk.told == ["00", "01", "02", "07", "aa", "bb"] && walk.without == ["nobody"])
            let estimate = try await pool.query("SELECT estimate FROM registry.campaign").single(Int64.self)
            #expect(estimate == 5)
        }
    }

    @Test func `a campaign id in use by another app is rejected`() async throws {
        try await Self.withTen { campaigns, _, _ in
            let ours = A.notification(.everyone)
            _ = try await campaigns.open(ours, to: ours.audience!)
            let theirs = A.notification(.everyone, app: AppID(rawValue: "other")!)
            await #expect(throws: CampaignConflict.self) {
                _ = try await campaigns.open(theirs, to: theirs.audience!)
            }
        }
    }

    @Test func `an FCM registration on iOS counts as Apple's if its platform says so`() async throws {
        try await Fixture.withStore { store, pool in
            var claims = ["01", "02", "03"].map { Fixture.claim("u\($0)", $0, .fcm) }
            claims.append(Fixture.claim("u04", "04", .fcm, kind: .fcmWeb))
            (claims[0].platform, claims[1].platform, claims[3].platform) = (.ios, .android, .ios)
            try await store.register(claims)
            for (platform, told) in [(DeviceFilter.Platform.apple, ["01"]), (.android, ["02", "03"]), (.web, ["04"])] {
                let filter = DeviceFilter(platform: [platform])
                let notification = A.notification(.everyone, campaign: UUID(), devices: filter)
                #expect(try await A.walk(notification, CampaignStore(pool)).told == told)
            }
        }
    }

    @Test func `a filter matches devices with all requested data`() async throws {
        try await Fixture.withStore { store, pool in
            func claim(
                _ user: String, _ token: String, _ kind: RegistrationKind, _ known: [String?], ago: Int = 1
            ) -> RegistrationRequest {
                var claim = Fixture.claim(
                    user, token, kind.provider, kind: kind, at: .now + .seconds(-3600 * ago))
                (claim.locale, claim.timeZone, claim.appVersion) = (known[0], known[1], known[2])
                return claim
            }
            try await store.register([
                claim("a", "01", .alert, ["de-CH", "Europe/Zurich", "2.10"]),
                claim("b", "02", .alert, ["de", "Europe/Berlin", "2.9"]),
                claim("c", "03", .alert, ["den", nil, "2.0.0"]),
                claim("d", "04", .fcmToken, [nil, nil, nil], ago: 48),
                claim("e", "05", .fcmWeb, ["DE-at", "Europe/Vienna", "beta"]),
                claim("f", "06", .fid, ["en", "Europe/Zurich", "3.1-rc1"]),
            ])
            let campaigns = CampaignStore(pool)
            func version(_ text: String) -> AppVersion { AppVersion(rawValue: text)! }
            let hour = Timestamp.now + .seconds(-7200)
            let cases: [(DeviceFilter, [String])] = [
                (.init(), ["01", "02", "03", "04", "05", "06"]), (.init(platform: []), []),
                (.init(platform: [.apple]), ["01", "02", "03"]), (.init(platform: [.android]), ["04", "06"]),
                (.init(platform: [.web, .apple]), ["01", "02", "03", "05"]),
                (.init(locale: ["de"]), ["01", "02", "05"]),
                (.init(locale: ["de-CH", "EN"]), ["01", "06"]), (.init(timeZone: ["Europe/Zurich"]), ["01", "06"]),
                (.init(appVersion: .init(from: version("2.10"))), ["01", "06"]),
                (.init(appVersion: .init(until: version("2.10"))), ["02", "03"]),
                (.init(appVersion: .init(from: version("2"), until: version("2.0.1"))), ["03"]),
                (.init(appVersion: .init(from: version("2.0"), until: version("3.1.0"))), ["01", "02", "03"]),
                (.init(lastSeen: .init(after: hour)), ["01", "02", "03", "05", "06"]),
                (.init(lastSeen: .init(before: hour)), ["04"]),
                (.init(platform: [.apple], locale: ["de"], timeZone: ["Europe/Berlin"]), ["02"]),
            ]
            for (filter, expected) in cases {
                let walk = try await A.walk(A.notification(.everyone, campaign: UUID(), devices: filter), campaigns)
                #expect(walk.told == expected, "\(filter)")
            }
        }
    }

    @Test func `the later of two membership changes wins, and none from before an erasure counts`() async throws {
        try await Self.withTen { campaigns, store, pool in
            let memberships = MembershipStore(pool)
            let beta = UserGroup.topic(A.name("beta"))
            let then = Timestamp.now + .seconds(-100)
            #expect(try await memberships.apply([A.member("u1", beta, joins: false, at: then)]) == 1)
            #expect(try await memberships.apply([A.member("u1", beta, at: then + .seconds(-1))]) == 0)
            #expect(try await memberships.topics(of: Fixture.user("u1")) == [])
            #expect(try await memberships.apply([A.member("u1", beta, at: then + .seconds(1))]) == 1)
            #expect(try await memberships.topics(of: Fixture.user("u1")) == [A.name("beta")])
            // Within one batch the latest wins, of equal times the last.
            #expect(
                try await memberships.apply([
                    A.member("u2", beta, at: then), A.member("u2", beta, joins: false, at: then),
                    A.member("u2", beta, at: then + .seconds(-5)),
                ]) == 1)
            #expect(try await memberships.topics(of: Fixture.user("u2")) == [])

            let list = A.notification(.users([A.user("u1"), A.user("u4")], part: 1, of: 2))
            #expect(try await campaigns.open(list, to: list.audience!) == [])
            try await store.erase(Fixture.user("u1"))
            #expect(try await memberships.topics(of: Fixture.user("u1")) == [])
            #expect(try await memberships.apply([A.member("u1", beta, at: then + .seconds(2))]) == 0)
            let listed = try await pool.query("SELECT count(*) FROM registry.campaign_member").single(Int.self)
            #expect(listed == 1)
        }
    }
}
