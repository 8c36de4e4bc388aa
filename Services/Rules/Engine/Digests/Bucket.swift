package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

/// The items that one rule has collected for a user's next digest.
package struct Bucket: Sendable {
    /// The time from which the close was planned.
    package var plannedAt: Timestamp
    /// The previous digest of the bucket.
    package var last: DigestTime.Occurrence?
    /// In order of arrival.
    package var items: [Item]

    package init(
        plannedAt: Timestamp, last: DigestTime.Occurrence? = nil, items: [Item]
    ) {
        self.plannedAt = plannedAt
        self.last = last
        self.items = items
    }

    package struct Item: Hashable, Sendable {
        package var name: String
        package var notification: UUID
        package var event: UUID
        package var correlation: String
        package var values: JSONValue
        package var saidAt: Timestamp
        /// The item counts from `from` until `end`.
        package var from: Timestamp
        package var end: Timestamp?
        package var wasSent = false
        /// The number of the next decision about its notification. Earlier decisions can have held it.
        package var step = 1

        package init(
            name: String, notification: UUID, event: UUID, correlation: String, values: JSONValue, saidAt: Timestamp,
            from: Timestamp, end: Timestamp? = nil, wasSent: Bool = false, step: Int = 1
        ) {
            self.name = name
            self.notification = notification
            self.event = event
            self.correlation = correlation
            self.values = values
            self.saidAt = saidAt
            self.from = from
            self.end = end
            self.wasSent = wasSent
            self.step = step
        }
    }

    /// The result of ``Bucket/close(_:_:zone:now:)``.
    package struct Closing: Hashable, Sendable {
        /// The items of the digest to send; empty: send none.
        package var told: [Item] = []
        package var last: DigestTime.Occurrence?
        package var gone: [Item] = []
        /// The next planned close, and the time from which it was planned.
        package var next: Timestamp?
        package var plannedAt: Timestamp
    }

    /// The maximum delay of a digest that still counts for its planned date.
    static let lateness = DigestTime.minimumInterval

    /// Closes the bucket if it is due or full, and plans the next close.
    ///
    /// Called at the planned time, and after a change of the user's digest time or time zone.
    ///
    /// - Parameter zone: the app's time zone, for users without their own.
    package func close(_ digest: Digest, _ settings: PersonalSettings, zone: Zone, now: Timestamp) -> Closing {
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
