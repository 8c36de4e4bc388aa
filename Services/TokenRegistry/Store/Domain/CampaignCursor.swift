package import FoundationEssentials
package import PushProtocol

/// The progress of a campaign through one range of its audience. The message is the checkpoint: it is acknowledged
/// after the pushes of its step and the next cursor are confirmed. Exchange `devices`, routing key `campaign.cursor`.
package struct CampaignCursor: WireMessage, Codable, Hashable {
    package static let messageType = "heliograph.campaign-cursor"
    package static let messageVersion = 1

    package var trace: Trace
    package var app: AppID
    package var campaign: UUID
    var range: Int
    /// The copy's number, from 1. Until the first step, each delivery of the notification creates a copy. `nil` if an
    /// earlier release sent it.
    package var copy: Int64?
    /// Steps made.
    package var step: Int64
    /// The last user processed; empty at the beginning.
    package var position: String
    /// The sum of all steps.
    package var tally: CampaignTally
    /// Whether the range has been walked to its end.
    package var isAtEnd: Bool

    /// The start of a range.
    package init(_ trace: Trace, app: AppID, campaign: UUID, range: Int, from lower: String, copy: Int64? = nil) {
        self.trace = trace.next(id: DerivedID.caused(by: campaign, "cursor.\(range)"))
        self.app = app
        self.campaign = campaign
        self.range = range
        self.copy = copy
        step = 0
        position = lower
        tally = CampaignTally()
        isAtEnd = false
    }

    /// The cursor after a step up to `position`; `nil`: up to the end of the range.
    func advanced(past position: String?, by tally: CampaignTally) -> CampaignCursor {
        var cursor = self
        cursor.step = step.addingSaturated(1)
        cursor.trace = trace.next(id: DerivedID.caused(by: campaign, "cursor.\(range)", index: Int(cursor.step)))
        cursor.position = position ?? self.position
        cursor.isAtEnd = position == nil
        cursor.tally = self.tally + tally
        return cursor
    }
}

/// Counts of a campaign's steps.
package struct CampaignTally: Codable, Hashable, Sendable {
    /// Users with a push, or without a device.
    package var users: Int64 = 0
    /// Devices in published pushes.
    package var devices: Int64 = 0
    package var pushes: Int64 = 0
    package var without: Int64 = 0
    /// Rows read, whether of the audience or not: registrations, or members of a group or list. The unit of the
    /// campaign's estimate.
    var looked: Int64 = 0

    /// Saturates, since a cursor's counts come from the bus.
    package static func + (a: CampaignTally, b: CampaignTally) -> CampaignTally {
        CampaignTally(
            users: a.users.addingSaturated(b.users), devices: a.devices.addingSaturated(b.devices),
            pushes: a.pushes.addingSaturated(b.pushes),
            without: a.without.addingSaturated(b.without), looked: a.looked.addingSaturated(b.looked))
    }
}
