package import FoundationEssentials
package import PushProtocol
import RuleLanguage

/// The inputs of stored decisions. The same rules make the same decisions of them again (``replayed(by:_:)``).
///
/// The decisions themselves are in the decision log. One recording has the decisions of one event, of one step of a
/// fan-out, on one held notification, or on the close of one digest bucket.
package struct Recording: Hashable, Sendable {
    package var app: AppID
    /// The key of the event. For a digest: of its first item.
    package var event: UUID
    /// The version of the rules that decided; `nil` if the app no longer had the rule.
    package var ruleSet: UUID?
    /// The clock of the decision.
    package var at: Timestamp
    /// The number of decisions.
    package var count: Int
    package var body: Body

    package init(app: AppID, event: UUID, ruleSet: UUID?, at: Timestamp, count: Int, body: Body) {
        self.app = app
        self.event = event
        self.ruleSet = ruleSet
        self.at = at
        self.count = count
        self.body = body
    }

    package enum Body: Hashable, Sendable {
        case event(RecordedEvent)
        case page(RecordedPage)
        case held(RecordedRelease)
        case digest(RecordedClose)
    }
}

/// An event as it arrived, and the inputs of the decisions about it.
package struct RecordedEvent: Codable, Hashable, Sendable {
    package var event: StoredEvent
    package var arrived: Timestamp
    /// The rules whose recipients get the notification in steps. ``RecordedPage`` has each step.
    package var large: [String]?
    package var inputs: RecordedInputs

    package init(event: StoredEvent, arrived: Timestamp, large: [String]? = nil, inputs: RecordedInputs) {
        self.event = event
        self.arrived = arrived
        self.large = large
        self.inputs = inputs
    }
}

/// One step of a fan-out. Its event is in the recording of the event.
package struct RecordedPage: Codable, Hashable, Sendable {
    package var rule: String
    package var arrived: Timestamp
    package var users: [UserID]
    package var inputs: RecordedInputs

    package init(rule: String, arrived: Timestamp, users: [UserID], inputs: RecordedInputs) {
        self.rule = rule
        self.arrived = arrived
        self.users = users
        self.inputs = inputs
    }
}

/// A held notification that was due, and the inputs of the decision on it.
package struct RecordedRelease: Codable, Hashable, Sendable {
    package var notification: UUID
    package var step: Int
    package var rule: String
    package var user: UserID
    package var terms: HeldItem.Terms
    package var person: RecordedPerson

    package init(_ item: HeldItem, _ person: RecordedPerson) {
        notification = item.recipient.notification
        step = item.step
        rule = item.rendered.rule
        user = item.recipient.user
        terms = item.terms
        self.person = person
    }
}

/// A digest bucket that closed, without the values of its items.
package struct RecordedClose: Codable, Hashable, Sendable {
    package var user: UserID
    package var bucket: String
    package var rule: String
    package var planned: Timestamp
    /// The local date of the previous digest, as days since 1970-01-01, and its time.
    package var lastDay: Int?
    package var lastAt: Timestamp?
    package var items: [Item]
    package var person: RecordedPerson

    package struct Item: Codable, Hashable, Sendable {
        package var notification: UUID
        package var event: UUID
        package var step: Int
        package var from: Timestamp
        package var end: Timestamp?
        /// Present and true if an earlier digest had the item.
        package var sent: Bool?
    }

    package init(_ row: DueBucket, _ person: RecordedPerson) {
        user = row.key.person.user
        bucket = row.key.bucket
        rule = row.rule
        planned = row.bucket.plannedAt
        lastDay = row.bucket.last?.date.dayNumber
        lastAt = row.bucket.last?.at
        items = row.bucket.items.map { item in
            Item(
                notification: item.notification, event: item.event, step: item.step, from: item.from, end: item.end,
                sent: item.wasSent ? true : nil)
        }
        self.person = person
    }
}

extension Recording {
    /// The stored name of the kind.
    package var kind: String {
        switch body {
        case .event: "event"
        case .page: "page"
        case .held: "held"
        case .digest: "digest"
        }
    }

    /// The stored JSON of the body.
    package func text() throws(WireError) -> String {
        switch body {
        case .event(let body): try WireCoding.text(body)
        case .page(let body): try WireCoding.text(body)
        case .held(let body): try WireCoding.text(body)
        case .digest(let body): try WireCoding.text(body)
        }
    }
}

extension Recording.Body {
    /// - Returns: `nil` for a kind of a later release.
    package init?(kind: String, text: String) throws(WireError) {
        switch kind {
        case "event": self = .event(try WireCoding.decodeStored(RecordedEvent.self, from: text))
        case "page": self = .page(try WireCoding.decodeStored(RecordedPage.self, from: text))
        case "held": self = .held(try WireCoding.decodeStored(RecordedRelease.self, from: text))
        case "digest": self = .digest(try WireCoding.decodeStored(RecordedClose.self, from: text))
        default: return nil
        }
    }
}
