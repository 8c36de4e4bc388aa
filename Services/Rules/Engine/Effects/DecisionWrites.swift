package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

/// The effects of a batch of decisions, written in one statement.
package struct DecisionWrites: Sendable {
    package var decisions: [DecisionRecord] = []
    package var decidedAt: Timestamp
    package var renderedNotifications: [RenderedNotification] = []
    package var inbox: [Kept] = []
    package var held: [Held] = []
    /// The charged cap histories, by user.
    package var capHistory: [PersonKey: [String: [Timestamp]]] = [:]

    /// A notification in an inbox.
    package struct Kept: Sendable {
        package var notification: UUID
        package var person: PersonKey
        package var rendered: UUID
        package var thread: String?
        package var isRead = false
    }

    /// When each dedupe key ends, by user.
    package var dedupeUntil: [PersonKey: [String: Timestamp]] = [:]
    package var gathered: [Gathered] = []
    package var reports: [Report] = []
    package var replacedWords: [ReplacedWords] = []
    package var replacingPushes: [ReplacingPush] = []

    package struct Held: Sendable {
        package var notification: UUID
        package var person: PersonKey
        package var rule: String
        package var rendered: UUID
        package var event: UUID
        package var badge: Int?
        package var kind: HeldKind = .held
        package var item: String?
        package var saidAt: Timestamp?
        /// When it was first to be pushed; `nil`: now.
        package var since: Timestamp?
        package var dueAt: Timestamp
        /// Whether the inbox has the notification, or never gets it.
        package var isKept = true
        package var isByQuietHours = false
        package var entry: Digest.Entry?

        /// The decision that drops the held notification.
        package func decided(_ reason: RuleDecision.Cause) -> DecisionRecord {
            DecisionRecord(
                notification: notification, step: 1, event: event, rule: rule, person: person,
                decision: RuleDecision(answer: .drop, reason: reason))
        }
    }

    /// A notification that is gathered for a digest.
    package struct Gathered: Sendable {
        package var key: BucketKey
        package var rule: String
        package var item: Bucket.Item
        package var digest: Digest
        /// The app's default time zone.
        package var zone: Zone
    }

    /// A notification whose delivery is reported to the upstream.
    package struct Report: Sendable {
        package var notification: UUID
        package var person: PersonKey
        package var rule: String
        package var correlation: String
    }

    package init(decidedAt: Timestamp) { self.decidedAt = decidedAt }

    package var isEmpty: Bool { decisions.isEmpty && held.isEmpty }
}

/// Why a notification is held.
package enum HeldKind: String, Sendable {
    /// The recipient's quiet hours, or a cap.
    case held
    /// The event names a later time.
    case scheduled
    /// The notification is a digest, which is due.
    case summary
}
