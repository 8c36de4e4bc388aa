import FoundationEssentials
import PushProtocol

/// The items that one rule has collected for a user's next digest.
struct Bucket: Sendable {
    /// The time from which the close was planned.
    var plannedAt: Timestamp
    /// The previous digest of the bucket.
    var last: DigestTime.Occurrence?
    /// In order of arrival.
    var items: [Item]

    struct Item: Hashable, Sendable {
        var name: String
        var notification: UUID
        var event: UUID
        var correlation: String
        var values: JSONValue
        var saidAt: Timestamp
        /// The item counts from `from` until `end`.
        var from: Timestamp
        var end: Timestamp?
        var wasSent = false
        /// The number of the next decision about its notification. Earlier decisions can have held it.
        var step = 1
    }

    /// The result of ``Bucket/close(_:_:zone:now:)``.
    struct Closing: Hashable, Sendable {
        /// The items of the digest to send; empty: send none.
        var told: [Item] = []
        /// The latest digest of the bucket.
        var last: DigestTime.Occurrence?
        /// The items to remove from the bucket.
        var gone: [Item] = []
        /// The next planned close, and the time from which it was planned.
        var next: Timestamp?
        var plannedAt: Timestamp
    }

    /// The maximum delay of a digest that still counts for its planned date.
    static let lateness = DigestTime.minimumInterval

    /// Closes the bucket if it is due or full, and plans the next close.
    ///
    /// Called at the planned time, and after a change of the user's digest time or time zone.
    ///
    /// - Parameter zone: the app's time zone, for users without their own.
    func close(_ digest: Digest, _ settings: PersonalSettings, zone: Zone, now: Timestamp) -> Closing {
        let ended = items.filter { item in item.end.map { $0 <= now } ?? false }
        let live = items.filter { item in item.end.map { $0 > now } ?? true }
        var closing = Closing(last: last, gone: ended, plannedAt: plannedAt)
        let counting = live.filter { $0.from <= now }
        let newItems = counting.filter { !$0.wasSent }
        let isFull = digest.count.map { newItems.count >= $0 } ?? false
        let planned = digest.closing(after: plannedAt, settings: settings, zone: zone, last: last)
        guard isFull || planned.at <= now else {
            closing.next = live.isEmpty ? nil : planned.at
            return closing
        }
        let hasContent = !newItems.isEmpty || digest.remains == .told
        closing.told = hasContent ? counting : []
        if !closing.told.isEmpty {
            closing.last =
                now - planned.at < Bucket.lateness && planned.at <= now
                ? planned : DigestTime.Occurrence(date: (settings.zone ?? zone).local(now).date, at: now)
        }
        var rest = live
        if digest.remains == .never {
            closing.gone += closing.told
            rest = live.filter { $0.from > now }
        }
        let future = rest.filter { $0.from > now }.map(\.from).min()
        let anchor = digest.remains == .told && !counting.isEmpty ? now : future
        if let anchor {
            closing.plannedAt = anchor
            closing.next = digest.closing(after: anchor, settings: settings, zone: zone, last: closing.last).at
        }
        return closing
    }
}

extension Rule {
    /// Renders a digest's summary for a recipient.
    ///
    /// - Parameter items: the items' values, in order of arrival.
    func summary(_ digest: Digest, of items: [JSONValue], _ localization: Localization, defaults: Language)
        throws(PlacedProblem)
        -> RenderedText
    {
        var rule = self
        // These settings refer to one event.
        rule.how.thread = nil
        rule.how.collapseKey = nil
        rule.how.badge = nil
        rule.say = digest.say
        let scope = Scope(root: Digest.summary(digest.ordered(items)), localization: localization)
        let messageTemplate = rule.messageTemplate(in: localization.language, defaults: defaults)
        let content = try rule.content(messageTemplate, scope, place: "policy.digest.say")
        return RenderedText(content: content, preview: try rule.preview(of: content, messageTemplate, scope))
    }
}
