import Foundation
import Postgres
import PushProtocol
import TestSupport

@testable import RegistryStore

/// Notifications to audiences, and campaign walks without a broker.
enum AudienceFixture {
    typealias Fixture = StoreFixture
    static let campaign = UUID(uuidString: "0c0c0c0c-0000-5000-8000-000000000001")!

    static func name(_ text: String) -> GroupName { GroupName(rawValue: text)! }
    static func user(_ text: String) -> UserID { UserID(rawValue: text)! }

    static func notification(
        _ members: Audience.Members, campaign: UUID = campaign, devices: DeviceFilter? = nil, rate: Int? = nil,
        app: AppID = Fixture.app, expiresAt: Timestamp? = nil, part: String = "", holdOut: Int? = nil,
        resolving event: DomainEvent? = nil
    ) -> PushProtocol.Notification {
        PushProtocol.Notification(
            trace: Trace(id: DerivedID.uuid5(campaign, ["n", part]), correlation: "e", causation: "e"), app: app,
            rule: "announcement", lane: .interactive,
            content: event.map { Content(data: ["event": $0.cloudEvent]) } ?? Content(body: "hi"), expiresAt: expiresAt,
            recipients: [],
            audience: Audience(
                campaign: campaign, members: members, devices: devices, rate: rate, holdOut: holdOut,
                resolves: event != nil))
    }

    static func member(
        _ user: String, _ group: UserGroup, joins: Bool = true, at: Timestamp? = nil, app: AppID = Fixture.app
    )
        -> MembershipStore.Change
    {
        .init(app: app, change: MembershipChange(user: Self.user(user), group: group, joins: joins, at: at))
    }

    /// Opens a campaign and walks each of its ranges to the end, page by page.
    static func walk(
        _ notification: PushProtocol.Notification, _ store: CampaignStore, limit: Int = 3
    ) async throws -> (told: [String], without: [String]) {
        let cursors = try await store.open(notification, to: notification.audience!)
        let campaign = try await store.campaign(notification.audience!.campaign)
        var told: [String] = []
        var without: [String] = []
        for var cursor in cursors {
            while !cursor.isAtEnd {
                guard case .granted(let upper) = try await store.claim(cursor, redelivered: false) else { break }
                let page = try await store.page(of: campaign!, after: cursor.position, upTo: upper, limit: limit)
                let step = CampaignStep(campaign!, at: cursor, page, now: .now)
                told += step.plan.pushes.flatMap(\.targets).map(\.token.secret)
                without += page.members.map(\.user).filter { user in
                    step.plan.outcomes.flatMap(\.outcomes).contains {
                        $0.notification == DerivedID.notification(campaign: campaign!.id, recipient: user)
                    }
                }.map(\.rawValue)
                cursor = step.next
            }
        }
        return (told.sorted(), without.sorted())
    }
}
