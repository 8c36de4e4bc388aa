import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// Ended registrations are kept as long as late messages may refer to them.
@Suite(.timeLimit(.minutes(2))) struct EndedRegistrationTests {
    typealias Fixture = StoreFixture
    typealias R = RetentionFixture

    private static func word(_ claim: RegistrationRequest) -> Invalidation {
        Invalidation(app: Fixture.app, device: claim.device, notRegisteredSince: .now, reason: "Unregistered")
    }

    @Test func `old ended registrations are deleted; younger, active and erased ones stay`() async throws {
        try await Fixture.withStore(devicesPerUser: 3) { store, pool in
            for (user, days) in [("old", 91), ("new", 89)] {
                func claim(_ token: String, on installation: String? = nil) -> RegistrationRequest {
                    Fixture.claim(user, "\(user)-\(token)", on: installation)
                }
                try await store.register([claim("left"), claim("refused"), claim("before", on: "\(user)-phone")])
                try await store.unregister([claim("left")])
                _ = try await store.deactivate([Self.word(claim("refused"))])
                try await store.register([claim("after", on: "\(user)-phone")])
                for number in 1...3 { try await store.register([claim("more-\(number)")]) }
                let states: [String] = try await pool.query(
                    "SELECT state FROM registry.registration WHERE user_id = \(user) AND state <> 'active' ORDER BY 1"
                ).map { try $0.decode(String.self, at: 0) }
                #expect(states == ["evicted", "invalidated", "replaced", "signed-out"])
                try await R.age(
                    ["left", "refused", "before", "after", "more-1", "more-2", "more-3"].map { claim($0) }, days: days,
                    since: 300, pool)
            }
            let erased = Fixture.claim("erased", "e")
            try await store.register([erased])
            try await store.erase(Fixture.user("erased"))
            let announced = try await R.announced(pool)
            #expect(try await R.sweep(pool) == 4)
            let left = ["new-after", "new-before", "new-left", "new-more-1", "new-more-2", "new-more-3", "new-refused"]
            #expect(
                try await R.tokens(pool) == ["erased erased"] + left + ["old-more-1", "old-more-2", "old-more-3"])
            #expect(try await R.sweep(pool) == 0)
            // An old active registration is flagged; there are no other events.
            #expect(Set(try await R.announced(pool).dropFirst(announced.count)) == ["stale"])
        }
    }

    @Test func `the configured retention counts from the end's last change`() async throws {
        try await Fixture.withStore { store, pool in
            let claims = ["01", "02"].map { Fixture.claim("a", $0) }
            try await store.register(claims)
            try await store.unregister(claims)
            try await R.age(claims, days: 50, pool)
            // A second sign-out changed the time of the end.
            try await pool.execute(
                "UPDATE registry.registration SET ended_at = \(R.ago(35)) WHERE device_id = \(claims[0].device)")
            let terms = RetentionTerms(ended: .seconds(86_400 * 40), records: .seconds(86_400 * 40))
            #expect(try await SweepStore(pool).advance(now: .now) == .finished(changed: 0, deleted: 0))
            #expect(try await SweepStore(pool, terms: terms).advance(now: .now) == .finished(changed: 0, deleted: 1))
            #expect(try await R.tokens(pool) == ["01"])
        }
    }

    @Test func `messages after the deletion change nothing, and a registration starts anew`() async throws {
        try await Fixture.withStore { store, pool in
            let claim = Fixture.claim("a", "01", on: "phone")
            try await store.register([claim])
            try await store.unregister([claim])
            try await R.age([claim], days: 91, pool)
            #expect(try await R.sweep(pool) == 1)
            let announced = try await R.announced(pool)
            #expect(announced == ["registered", "signed-out"])
            #expect(try await store.deactivate([Self.word(claim)]) == [])
            #expect(try await store.correct(device: claim.device, of: Fixture.app, to: .development) == false)
            #expect(try await store.deactivate(claim.device, of: Fixture.app) == nil)
            try await store.unregister([claim])
            #expect(try await R.announced(pool) == announced)
            // The sign-out is stored, as for an unknown device, and ages again.
            #expect(try await R.sweep(pool) == 0)
            try await store.register([claim])
            #expect(try await store.tokens(of: "a") == ["01"])
            #expect(try await R.announced(pool) == announced + ["registered"])
        }
    }

    @Test func `a moved registration is kept as long as its successor`() async throws {
        try await Fixture.withStore { store, pool in
            let wrong = Fixture.claim("a", "01", on: "phone")
            let right = Fixture.claim("a", "01", environment: .development, on: "phone")
            try await store.register([wrong])
            #expect(try await store.correct(device: wrong.device, of: Fixture.app, to: .development))
            try await R.age([wrong], days: 300, since: 301, pool)
            #expect(try await R.sweep(pool) == 0)
            #expect(try await store.register([wrong]) == [right.device])
            // A sign-out under the wrong environment also rejects late registrations.
            try await store.unregister([wrong])
            #expect(try await R.sweep(pool) == 0)
            let late = Fixture.claim("a", "01", on: "phone", at: .now + .seconds(-3600))
            #expect(try await store.register([late]) == [])
            try await R.age([right], days: 91, pool)
            _ = try await R.sweep(pool)
            _ = try await R.sweep(pool)
            #expect(try await R.tokens(pool) == [])
        }
    }

    @Test func `a running campaign keeps replaced tokens of its audience`() async throws {
        try await Fixture.withStore { store, pool in
            let (old, new) = (Fixture.claim("a", "01", on: "phone"), Fixture.claim("a", "02", on: "phone"))
            let elsewhere = Fixture.claim("a", "03", app: AppID(rawValue: "hide-and-seek")!, on: "phone")
            let later = Fixture.claim("a", "04", app: elsewhere.app, on: "phone")
            try await store.register([old, elsewhere])
            let campaigns = CampaignStore(pool)
            let notification = AudienceFixture.notification(.everyone)
            var cursor = try await campaigns.open(notification, to: notification.audience!)[0]
            try await store.register([new])
            try await store.register([later])
            try await R.age([old, new, elsewhere, later], days: 95, since: 120, pool)
            try await pool.execute("UPDATE registry.campaign SET cut_off = \(R.ago(100)), created_at = \(R.ago(100))")
            // Another app's campaign keeps nothing.
            #expect(try await R.sweep(pool) == 1)
            #expect(try await R.tokens(pool) == ["01", "02", "04"])
            let campaign = try #require(try await campaigns.campaign(AudienceFixture.campaign))
            let page = try await campaigns.page(of: campaign, after: "", upTo: nil, limit: 10)
            let step = CampaignStep(campaign, at: cursor, page, now: .now)
            #expect(step.plan.pushes.flatMap(\.targets).map(\.token.secret) == ["02"])
            cursor = step.next
            #expect(try await campaigns.finish(cursor))
            #expect(try await R.sweep(pool) == 1)
            #expect(try await R.tokens(pool) == ["02", "04"])
        }
    }

    @Test func `the service's role can delete registrations that ended a month ago, and no others`() async throws {
        try await Fixture.withStore { store, pool in
            let claims = ["01", "02", "03", "04"].map { Fixture.claim("a", $0) }
            try await store.register(claims)
            try await store.unregister(Array(claims.dropFirst()))
            try await R.age([claims[0], claims[1]], days: 31, since: 40, pool)
            try await R.age([claims[2]], days: 29, pool)
            let forgotten = try await pool.query(
                "SELECT registry.forget_ended(\(claims.map(\.device))::uuid[])"
            ).single(Int.self)
            #expect(forgotten == 1)
            #expect(try await R.tokens(pool) == ["01", "03", "04"])
        }
    }
}
