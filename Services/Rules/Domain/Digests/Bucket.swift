import FoundationEssentials
import PushProtocol

/// What one rule has gathered for one person.
struct Bucket: Sendable {
    /// What its close was planned from.
    var plannedAt: Timestamp
    /// When it was told before.
    var last: DigestTime.Occurrence?
    /// In the order in which they came.
    var items: [Item]

    struct Item: Hashable, Sendable {
        var name: String
        var notification: UUID
        var event: UUID
        var correlation: String
        var values: JSONValue
        var saidAt: Timestamp
        /// From when to when it counts.
        var from: Timestamp
        var end: Timestamp?
        var isTold = false
        /// The number of the next decision about its notification, which may have been held before.
        var step = 1
    }

    /// What is done when a bucket is looked at.
    struct Closing: Hashable, Sendable {
        /// What is summed up; empty when there is nothing to tell.
        var told: [Item] = []
        /// When it was told last.
        var last: DigestTime.Occurrence?
        /// What leaves the bucket, told or not.
        var gone: [Item] = []
        /// When it is looked at next, and what that follows from.
        var next: Timestamp?
        var plannedAt: Timestamp
    }

    /// How late a digest of one date may be, to be that date's still.
    static let lateness = DigestTime.leastPause

    /// Looks at it, for it is planned to close now, or its person's time has changed.
    ///
    /// - Parameter zone: where the app says its users are.
    func close(_ digest: Digest, _ settings: PersonalSettings, zone: Zone, now: Timestamp) -> Closing {
        let ended = items.filter { item in item.end.map { $0 <= now } ?? false }
        let live = items.filter { item in item.end.map { $0 > now } ?? true }
        var closing = Closing(last: last, gone: ended, plannedAt: plannedAt)
        let counting = live.filter { $0.from <= now }
        let news = counting.filter { !$0.isTold }
        let isFull = digest.count.map { news.count >= $0 } ?? false
        let planned = digest.closing(after: plannedAt, settings: settings, zone: zone, last: last)
        guard isFull || planned.at <= now else {
            closing.next = live.isEmpty ? nil : planned.at
            return closing
        }
        let isNews = !news.isEmpty || digest.remains == .told
        closing.told = isNews ? counting : []
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
    /// What a digest says, in a person's voice.
    ///
    /// - Parameter items: in the order in which they came.
    func summary(_ digest: Digest, of items: [JSONValue], _ localization: Localization, defaults: Language)
        throws(PlacedProblem)
        -> RenderedText
    {
        var rule = self
        // These speak of one event.
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
