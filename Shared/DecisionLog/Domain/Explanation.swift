package import FoundationEssentials

/// The decisions about one event: for each user the decision, its reason, and the providers' outcomes.
package struct Explanation: Hashable, Sendable {
    package var app: String
    package var source: String
    package var id: String
    package var type: String
    package var arrivedAt: Date
    package var ruleSet: UUID
    /// The fan-outs in progress, by rule; on the first page only. Rules fans out to more than a thousand users in
    /// batches.
    package var fanOuts: [FanOut]
    /// The latest revocations, where they were read (``RevocationLog/revocations(of:)``).
    package var revocations: [Revocation] = []
    /// The clear commands of this page's notifications, where they were read, the latest first.
    package var clears: [Clear] = []
    /// One page of notifications, by user, rule and notification.
    package var traces: [NotificationTrace]
    /// The last notification of this page if there are more; pass it as `after` for the next page.
    package var next: UUID?
    /// Counts of all notifications. On the first page, if there are more.
    package var totals: Totals?

    /// Counts of an event's notifications.
    package struct Totals: Hashable, Sendable {
        /// Pushes to users without an outcome.
        package var withoutOutcome: Int
        package var outcomes: Int
    }

    /// The progress of a fan-out to a large audience.
    package struct FanOut: Hashable, Sendable {
        package var rule: String
        /// The number of users decided so far, in the order of their ids.
        package var decided: Int
        /// An upper bound of the users left: members of several groups and excluded users are counted too. `nil` for
        /// fan-outs of an older version of rules, which did not record it.
        package var leftAtMost: Int?
    }

    package struct NotificationTrace: Hashable, Sendable {
        package var notification: UUID
        package var user: String
        package var rule: String
        /// In order; a held notification has several.
        package var decisions: [Decision]
        package var outcomes: [Outcome]
        /// `nil` when it is not in the inbox.
        package var inbox: Inbox?
        /// The time of the next decision about a held notification.
        package var dueAt: Date?
        package var receipts: [Receipt]
    }

    /// A copy on phones that a clear command removes.
    package struct Clear: Hashable, Sendable {
        package var notification: UUID
        package var user: String
        package var notedAt: Date
        /// The notification id of the command; `nil` while the command waits.
        package var command: UUID?
        package var sentAt: Date?
        /// The outcomes of the command.
        package var outcomes: [Outcome]
    }

    package struct Decision: Hashable, Sendable {
        package var at: Date
        package var answer: String
        package var reason: String
        package var until: Date?
    }

    package struct Outcome: Hashable, Sendable {
        package var at: Date
        package var origin: String
        package var device: UUID?
        package var disposition: String
        package var reason: String?
    }

    package enum Inbox: Hashable, Sendable {
        case unread
        case read(Date)
    }

    /// The user's reaction: `opened` or `dismissed`.
    package struct Receipt: Hashable, Sendable {
        package var at: Date
        package var what: String
    }
}

extension Explanation {
    /// The meaning of each decision reason, for operators.
    package static let meanings: KeyValuePairs = [
        "wanted": "no preference or limit prevents it",
        "critical": "critical by the rule file: users cannot switch it off",
        "noiseless": "not user-visible, so preferences do not apply",
        "expired": "its expiration had passed",
        "switched-off": "the user has switched off all notifications",
        "channel-off": "the user has switched off pushes",
        "type-off": "the user has switched off this type, or has not switched on a type that is off by default",
        "type-channel-off": "the user wants this type, but not as a push",
        "muted": "the user has muted its subject",
        "present": "the app was open",
        "viewing": "the user was viewing its thread",
        "capped": "the user's frequency cap was reached",
        "quiet-hours": "the user's quiet hours were in effect",
        "held-too-long": "held for the longest time that its rule allows",
        "held-too-often": "the quiet hours had not ended at the expected time, for the third time",
        "critical-storm": "too many critical notifications: check the upstream service",
        "audience": "addressed to a whole audience, so preferences do not apply",
        "segment": "the registry looks up the users of the segment; each of them has a decision of their own",
        "nobody": "no user matches the segment",
        "broadcast": "addressed to a topic or channel of the provider, so preferences do not apply",
        "scheduled": "the event schedules it for a later time",
        "gathered": "collected for a digest",
        "summed-up": "sent in a digest; the digest is listed under its latest event",
        "too-late": "the time before which it had to be sent has passed",
        "done": "cancelled by a later event",
        "replaced": "replaced by a later event about the same subject",
        "repeated": "the same was sent to this user recently",
        "unsendable": "too large for a message, or nested too deeply",
        "rule-gone": "the rule file no longer contains its rule",
        "revoked": "taken back by an operator, or by an event under revoke in the rule file",
        "surface-ended": "ends the live surface, because its start was taken back",
        "replacement": "new texts for a notification that was pushed, by an event under replace in the rule file",
        "hold-out": "nothing: a hold-out leaves the user out, to measure the effect",
        "words-replaced": "no push: the waiting notification or the inbox item has the new texts",
        "already-read": "no push: the user has read, dismissed or removed it; an inbox item has the new texts",
        "overtaken": "a later event under replace was decided before",
        "nothing-to-replace": "no notification about this item was sent before, or the digest with it was sent",
        "too-many": "the item has more than 1000 notifications, or a fan-out; their texts stay",
    ]

    package var reasons: Set<String> { Set(traces.flatMap(\.decisions).map(\.reason)) }
}
