import FoundationEssentials
import PushProtocol

/// Where a campaign's walk through one range of its audience stands. The message is the checkpoint: it leaves its queue in
/// the same transaction of the broker that brings in the pushes of its next step and the cursor behind them. Exchange
/// `devices`, routing key `campaign.cursor`.
struct CampaignCursor: WireMessage, Hashable {
    static let messageType = "heliograph.campaign-cursor"
    static let messageVersion = 1

    var trace: Trace
    var app: AppID
    var campaign: UUID
    /// The range's number.
    var range: Int
    /// Which of the copies of the range's cursor this is, from 1: each delivery of the notification gives one out, until
    /// the first step is made. Absent: of a release that did not tell them apart.
    var copy: Int64?
    /// How many steps were made.
    var step: Int64
    /// The last user who was passed; empty at the beginning.
    var position: String
    /// What all steps came to.
    var tally: CampaignTally
    /// Whether the range has been walked to its end.
    var isAtEnd: Bool

    /// The start of a range.
    init(_ trace: Trace, app: AppID, campaign: UUID, range: Int, from lower: String, copy: Int64? = nil) {
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

    /// Where it stands after a step that passed everyone up to `position`; `nil`: up to the end of the range.
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

/// What a walk came to.
struct CampaignTally: Codable, Hashable, Sendable {
    /// Who was told, or has no device to be told on.
    var users: Int64 = 0
    /// Devices that a push is on its way to.
    var devices: Int64 = 0
    /// Messages that these pushes are in.
    var pushes: Int64 = 0
    /// Users without a device.
    var without: Int64 = 0
    /// What was looked at, whether meant or not, in the unit of the campaign's estimate: registrations of everyone, or
    /// members of a group or list.
    var looked: Int64 = 0

    /// Never overflows: what a cursor says came over the bus.
    static func + (a: CampaignTally, b: CampaignTally) -> CampaignTally {
        CampaignTally(
            users: a.users.addingSaturated(b.users), devices: a.devices.addingSaturated(b.devices),
            pushes: a.pushes.addingSaturated(b.pushes),
            without: a.without.addingSaturated(b.without), looked: a.looked.addingSaturated(b.looked))
    }
}
