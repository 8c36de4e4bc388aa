package import FoundationEssentials
package import PushProtocol

/// A notification to an audience. Immutable while the campaign runs.
package struct Campaign: Hashable, Sendable {
    /// Without its list of users.
    package var notification: Notification
    package var audience: Audience
    /// The audience's time: registrations after it do not belong, unless they replace one from before.
    var cutOff: Date

    package var id: UUID { audience.campaign }
    package var app: AppID { notification.app }

    /// The campaign's state; raw values of the column `state`.
    enum State: String, Hashable, Sendable, CaseIterable {
        /// Parts of its user list are missing.
        case collecting
        case running, paused
        case done, cancelled
        /// The notification's expiration passed before the end.
        case expired
    }
}

package struct CampaignPage: Hashable, Sendable {
    var members: [Member]
    /// The last user read, whether of the audience or not; `nil`: the page is the last.
    package var end: String?
    /// Registrations or members read for the page.
    var looked: Int

    struct Member: Hashable, Sendable {
        package var user: UserID
        /// The user's registrations that belong to the audience.
        package var devices: [Registration]
    }
}

package struct CampaignStep: Hashable, Sendable {
    package let plan: PushPlan
    package let next: CampaignCursor
    /// The counts of this step.
    package let tally: CampaignTally

    /// Deterministic: the same cursor and page give the same messages with the same ids.
    package init(
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
