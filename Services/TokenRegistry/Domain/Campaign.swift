import FoundationEssentials
import PushProtocol

/// A notification to an audience, as it is worked off. What of it never changes.
struct Campaign: Hashable, Sendable {
    /// Without its list of users.
    var notification: Notification
    var audience: Audience
    /// Who had a device then is meant: what is registered later is not, unless it takes the place of what was.
    var cutOff: Date

    var id: UUID { audience.campaign }
    var app: AppID { notification.app }

    /// Where a campaign stands; the words of the column `state`.
    enum State: String, Hashable, Sendable, CaseIterable {
        /// Parts of its list of users are still to come.
        case collecting
        case running, paused
        case done, cancelled
        /// Too late to tell anyone who was not told yet.
        case expired
    }
}

/// Some of an audience, in the order of the walk.
struct CampaignPage: Hashable, Sendable {
    var members: [Member]
    /// The last user who was looked at, whether meant or not; `nil`: there is nobody after this page.
    var end: String?
    /// How many registrations or members were looked at to make it.
    var looked: Int

    struct Member: Hashable, Sendable {
        var user: UserID
        /// Those of the user's registrations that are meant.
        var devices: [Registration]
    }
}

/// What one step of a campaign leads to.
struct CampaignStep: Hashable, Sendable {
    let plan: PushPlan
    let next: CampaignCursor
    /// Of this step alone.
    let tally: CampaignTally

    /// The same cursor and page give the same messages with the same ids.
    init(
        _ campaign: Campaign, at cursor: CampaignCursor, _ page: CampaignPage, now: Timestamp,
        fids: FIDPreference = FIDPreference()
    ) {
        var notification = campaign.notification
        let id = DerivedID.caused(by: campaign.id, "range.\(cursor.range)", index: Int(cursor.step))
        notification.trace = notification.trace.next(id: id)
        notification.lane = .bulk
        notification.audience = nil
        notification.recipients = page.members.map { member in
            .init(
                user: member.user, notification: DerivedID.notification(campaign: campaign.id, recipient: member.user))
        }
        plan = PushPlan(notification, devices: page.members.map(\.devices), now: now, fids: fids)
        tally = CampaignTally(
            users: Int64(page.members.count), devices: Int64(plan.pushes.reduce(0) { $0 + $1.targets.count }),
            pushes: Int64(plan.pushes.count), without: Int64(plan.outcomes.reduce(0) { $0 + $1.outcomes.count }),
            looked: Int64(page.looked))
        next = cursor.advanced(past: page.end, by: tally)
    }
}
