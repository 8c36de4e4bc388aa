package import FoundationEssentials
package import PushProtocol

/// The body of `PUT /v1/operator/campaigns/{campaign}`: the members of a direct notification to an audience, with the
/// device filter, the rate and the hold-out of the campaign.
///
///     {"tag": "city/malaga", "content": {"title": "Two for one"}, "ttl": 14400, "holdOut": 10, "rate": 500,
///      "devices": {"platform": ["android"], "appVersion": {"from": "4.2"}}}
package struct CampaignBody: Hashable, Sendable {
    /// The largest accepted body, in bytes.
    package static let maximumSize = 64 * 1024

    private static let audiences = ["topic", "tag", "everyone"]
    private static let message = ["content", "expires", "ttl", "collapse", "silent"]
    private static let options = ["devices", "rate", "holdOut"]

    private let direct: DirectNotification
    /// The device filter, the rate and the hold-out. Its id and its members are placeholders.
    private let selection: Audience

    /// - Throws: `WireError.missing` or `.invalid`, with the member's path and the correction.
    package init(_ body: [UInt8]) throws(WireError) {
        let value = try WireCoding.decode(JSONValue.self, from: body, maximumSize: Self.maximumSize)
        let known = Self.audiences + Self.message + Self.options
        let members = try JSONObjectReader(value, at: "the body", prefix: "", known: known)
        guard Self.audiences.filter({ members[$0] != nil }).count == 1 else {
            throw .invalid(path: "the body", problem: "exactly one of topic, tag and everyone must name the audience")
        }
        direct = try DirectNotification(.object((value.object ?? [:]).filter { !Self.options.contains($0.key) }))
        var selection: [String: JSONValue] = ["campaign": .string(DerivedID.namespace.uuidString), "to": "everyone"]
        for name in Self.options { selection[name] = members[name] }
        self.selection = try WireCoding.decode(Audience.self, from: try WireCoding.encode(JSONValue.object(selection)))
    }

    /// The notification that opens the campaign.
    ///
    /// The same body, campaign and time give the same notification, as for an event that is delivered again.
    package func notification(opening campaign: UUID, of app: AppID, at now: Timestamp) -> PushProtocol.Notification {
        let text = Hexadecimal.text(of: campaign)
        var audience = selection
        audience.campaign = campaign
        if case .audience(let group) = direct.recipients { audience.members = .group(group) }
        return PushProtocol.Notification(
            trace: Trace(id: DerivedID.caused(by: campaign, "opening"), correlation: text, causation: text), app: app,
            rule: rule, lane: .bulk, content: direct.content, expiresAt: direct.expiry(arrivedAt: now), recipients: [],
            audience: audience)
    }

    /// The name of the built-in rule with the same audience, so that reports put them together.
    private var rule: String {
        switch direct.recipients {
        case .audience(.topic): "direct-topic"
        case .audience(.tag): "direct-tag"
        case .everyone, .users, .group: "direct-everyone"
        }
    }
}
