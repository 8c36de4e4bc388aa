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
    /// The pages for rules, for an audience that is resolved. Such a step has no pushes.
    package let pages: [SegmentPage]
    package let next: CampaignCursor
    /// The counts of this step.
    package let tally: CampaignTally

    /// Deterministic: the same cursor and page give the same messages with the same ids.
    package init(
        _ campaign: Campaign, at cursor: CampaignCursor, _ page: CampaignPage, now: Timestamp,
        fids: FIDPreference = FIDPreference()
    ) {
        let members = page.members.filter { !campaign.audience.isHeldOut($0.user) }
        pages = campaign.audience.resolves ? campaign.pages(members.map(\.user), at: cursor) : []
        var notification = campaign.notification
        let id = DerivedID.caused(by: campaign.id, "range.\(cursor.range)", index: Int(cursor.step))
        notification.trace = notification.trace.next(id: id)
        notification.lane = .bulk
        notification.audience = nil
        let told = campaign.audience.resolves ? [] : members
        notification.recipients = told.map { member in
            .init(
                user: member.user, notification: DerivedID.notification(campaign: campaign.id, recipient: member.user))
        }
        plan = PushPlan(notification, devices: told.map(\.devices), now: now, fids: fids, campaign: campaign.id)
        tally = CampaignTally(
            users: Int64(members.count), devices: Int64(plan.pushes.reduce(0) { $0 + $1.targets.count }),
            pushes: Int64(plan.pushes.count), without: Int64(plan.outcomes.reduce(0) { $0 + $1.outcomes.count }),
            looked: Int64(page.looked))
        next = cursor.advanced(past: page.end, by: tally)
    }
}

extension Campaign {
    /// The event that addressed a segment; `nil` for other campaigns.
    package var event: DomainEvent? {
        guard audience.resolves, let event = notification.content.data?["event"] else { return nil }
        return try? DomainEvent(cloudEvent: event, of: app)
    }

    fileprivate func pages(_ users: [UserID], at cursor: CampaignCursor) -> [SegmentPage] {
        guard let event else { return [] }
        return SegmentPage.pages(
            of: users, for: event, by: notification.rule, campaign: id, range: cursor.range, step: cursor.step)
    }

    /// The page without users, for a segment that no user matches.
    package var emptyPage: SegmentPage? {
        event.map { SegmentPage.nobody(for: $0, by: notification.rule, campaign: id) }
    }
}
