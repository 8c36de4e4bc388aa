package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

/// The end of one user's live surface, because its start was revoked.
///
/// A Live Activity leaves the screen at once. Apps of other platforms get the `end` of the surface.
package struct SurfaceEnd: Hashable, Sendable {
    package var app: AppID
    /// The user, or the label of a broadcast channel.
    package var user: UserID
    package var isToChannel = false
    /// The notification that started the surface.
    package var start: UUID
    /// The rule of the start: `<entry>-start`, or `<entry>-start-message` for platforms without Live Activities.
    package var startRule: String
    /// The item of the surface (``LiveItem``).
    package var item: String
    /// The id of the start's event.
    package var event: String

    package init(app: AppID, user: UserID, start: UUID, startRule: String, item: String, event: String) {
        self.app = app
        self.user = user
        self.start = start
        self.startRule = startRule
        self.item = item
        self.event = event
    }

    /// The notification that ends the surface.
    package var notification: UUID {
        DerivedID.uuid5(start, isToChannel ? ["surface-end", user.rawValue] : ["surface-end"])
    }

    /// The rule that would end the surface by an event; `nil` if the item is not a live surface.
    package var rule: String? { surface.rule }

    private var surface: Surface {
        Surface(app: app, startRule: startRule, item: item, event: event, channel: isToChannel ? user : nil)
    }

    /// The ends for the channels of the surfaces that these ends are about, one for each channel.
    ///
    /// - Parameter channels: the labels of the channels, by item.
    package static func ends(of channels: [ItemKey: [UserID]], _ ends: [SurfaceEnd]) -> [SurfaceEnd] {
        var seen: Set<ItemKey> = []
        return ends.filter { !$0.surface.isMessage }.flatMap { end in
            let item = ItemKey(app: end.app, item: end.item)
            guard seen.insert(item).inserted else { return [SurfaceEnd]() }
            return channels[item, default: []].map { label in
                var one = end
                (one.user, one.isToChannel) = (label, true)
                return one
            }
        }
    }

    /// Returns the messages that end these surfaces, with at most ``Notification/maximumRecipients`` each.
    ///
    /// - Parameters:
    ///   - rules: the rule sets, for the lane and platforms of the starts.
    ///   - now: the time of the end. Devices ignore older states.
    package static func notifications(_ ends: [SurfaceEnd], by rules: RuleSets, now: Timestamp) -> [Notification] {
        var groups: [Surface: [Notification.Recipient]] = [:]
        for end in ends {
            groups[end.surface, default: []].append(
                Notification.Recipient(user: end.user, notification: end.notification))
        }
        return groups.sorted { $0.key.order < $1.key.order }.flatMap { surface, recipients in
            recipients.chunks(ofAtMost: Notification.maximumRecipients).compactMap { recipients in
                surface.notification(to: recipients, by: rules, now: now)
            }
        }
    }
}

/// A kind of surface of an item, with the same message for all users.
private struct Surface: Hashable {
    let app: AppID
    let startRule: String
    let item: String
    let event: String
    /// The label of a broadcast channel; `nil` for the surfaces of users.
    var channel: UserID?

    var order: (String, String, String, String) { (app.rawValue, item, startRule, channel?.rawValue ?? "") }

    var isMessage: Bool { startRule.hasSuffix("-message") }

    var rule: String? { LiveItem.parts(of: item).map { "\($0.entry)-end\(suffix)" } }

    private var suffix: String { channel != nil ? "-channel" : isMessage ? "-message" : "" }

    func notification(to recipients: [Notification.Recipient], by rules: RuleSets, now: Timestamp) -> Notification? {
        guard let (entry, thing) = LiveItem.parts(of: item), let rule else { return nil }
        let id = DerivedID.uuid5(DerivedID.namespace, "surface-end", ids: recipients.map(\.notification))
        let startRule = rules[app]?.rule(named: startRule)
        var notification = Notification(
            trace: Trace(id: id, correlation: event, causation: event, traceparent: nil), app: app, rule: rule,
            lane: startRule?.how.lane ?? .interactive, content: Content(), recipients: recipients)
        if let channel {
            guard let destination = Broadcast.Destination(channelLabel: channel.rawValue) else { return nil }
            notification.content = activity(now)
            notification.expiresAt = now + SurfaceChannelRole.storage
            notification.broadcast = Broadcast(notification: recipients[0].notification, to: destination)
            notification.recipients = []
        } else if isMessage {
            notification.content = message(entry, thing, now)
            notification.devices = startRule?.how.devices?.ofSummary ?? DeviceSelection(platforms: [.android])
        } else {
            notification.content = activity(now)
            notification.scope = thing
        }
        return notification
    }

    private func activity(_ now: Timestamp) -> Content {
        let aps: JSONValue = [
            "event": "end", "timestamp": .int(now.seconds), "dismissal-date": .int(now.seconds),
        ]
        return Content(apns: APNsOverride(headers: ["apns-push-type": "liveactivity"], payload: ["aps": aps]))
    }

    private func message(_ entry: String, _ thing: String, _ now: Timestamp) -> Content {
        Content(
            data: [
                "live": .string(entry), "live_item": .string(thing), "live_event": "end",
                "live_time": .string(RFC3339.string(from: now.date)), "live_state": [:],
            ], silent: true, fcm: FCMOverride(message: ["android": ["priority": "HIGH"]], validateOnly: nil))
    }
}
