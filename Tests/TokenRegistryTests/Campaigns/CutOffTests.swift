import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// A campaign's audience while devices are added, removed and change users.
@Suite(.timeLimit(.minutes(2))) struct CutOffTests {
    typealias Fixture = StoreFixture
    typealias A = AudienceFixture

    /// Walks up to `b`, runs `meanwhile`, then walks the rest.
    private static func told(
        _ store: RegistrationStore, _ campaigns: CampaignStore, meanwhile: () async throws -> Void
    ) async throws -> [String] {
        let notification = A.notification(.everyone)
        var cursor = try await campaigns.open(notification, to: notification.audience!)[0]
        let campaign = try #require(try await campaigns.campaign(A.campaign))
        var told: [String] = []
        for upper in ["b", nil] {
            let page = try await campaigns.page(of: campaign, after: cursor.position, upTo: upper, limit: 100)
            let step = CampaignStep(campaign, at: cursor, page, now: .now)
            told += step.plan.pushes.flatMap(\.targets).map(\.token.secret)
            cursor = step.next
            cursor.position = upper ?? ""
            if upper != nil { try await meanwhile() }
        }
        return told.sorted()
    }

    @Test func `a device registered after the cut-off does not belong`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01"), Fixture.claim("c", "02")])
            let told = try await Self.told(store, CampaignStore(pool)) {
                try await store.register([Fixture.claim("d", "03"), Fixture.claim("c", "04")])
                // A repeat at an app launch changes nothing.
                try await store.register([Fixture.claim("c", "02")])
            }
            #expect(told == ["01", "02"])
        }
    }

    @Test func `a device that changes users gets the push of its first user`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01"), Fixture.claim("c", "02")])
            let told = try await Self.told(store, CampaignStore(pool)) {
                try await store.register([Fixture.claim("c", "01")])
            }
            #expect(told == ["01", "02"])
        }
    }

    @Test func `a user who signs out before their page gets no push`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([Fixture.claim("a", "01"), Fixture.claim("c", "02")])
            let told = try await Self.told(store, CampaignStore(pool)) {
                try await store.unregister([Fixture.claim("a", "01"), Fixture.claim("c", "02")])
            }
            #expect(told == ["01"])
        }
    }

    @Test func `a replacement token takes the earlier one's place, once`() async throws {
        try await Fixture.withStore { store, pool in
            try await store.register([
                Fixture.claim("a", "01", on: "phone"), Fixture.claim("c", "02", on: "tablet"),
                Fixture.claim("d", "0d", kind: .voip, on: "desk"),
            ])
            let told = try await Self.told(store, CampaignStore(pool)) {
                try await store.register([
                    Fixture.claim("a", "03", on: "phone"), Fixture.claim("c", "04", on: "tablet"),
                    // Of another kind, so it replaces none.
                    Fixture.claim("c", "05", kind: .voip, on: "tablet"), Fixture.claim("e", "06", on: "new"),
                ])
                try await store.register([Fixture.claim("c", "07", on: "tablet")])
            }
            #expect(told == ["01", "07"])
        }
    }

    @Test func `a registration moved to its correct environment still belongs`() async throws {
        try await Fixture.withStore { store, pool in
            let claim = Fixture.claim("c", "02")
            try await store.register([Fixture.claim("a", "01"), claim])
            let told = try await Self.told(store, CampaignStore(pool)) {
                _ = try await store.correct(device: claim.device, of: Fixture.app, to: .development)
            }
            #expect(told == ["01", "02"])
        }
    }
}
