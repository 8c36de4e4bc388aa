import FoundationEssentials
import PushProtocol

/// A dry run of rule files: the decisions of the service, without a database, a bus or a clock of its own.
///
/// `DryRunDifferentialTests` compares it with the service on a real database.
struct DryRun {
    /// One decision about one person, as `rules.decision` would have it; or one correction of a badge.
    struct PredictedDecision: Hashable, Sendable {
        var at: Timestamp
        var app: AppID
        /// The upstream's id of it; `-` for a correction of a badge.
        var event: String
        var rule: String
        var user: UserID
        var decision: RuleDecision
        /// The message to this person alone; `nil` when nothing is pushed.
        var notification: Notification?
        /// The new entry in the person's inbox; `nil` when there is none.
        var kept: Content?

        var content: Content? { notification?.content }
    }

    /// An event that comes to nothing, and why.
    struct Refusal: Hashable, Sendable {
        var at: Timestamp
        var event: String
        var reason: String
    }

    let ruleSets: RuleSets
    /// The release of what quiet hours held is spread over this time. The service takes
    /// ``DecisionStore/usualSpread``; without it a preview shows when quiet hours end.
    var spread = Duration.zero
    var people: [PersonKey: Person] = [:]
    var groups: [GroupKey: DryRunGroup] = [:]
    var tellings: [PredictedDecision] = []
    var refusals: [Refusal] = []
    /// By device, where the app is open.
    var leases: [PersonKey: [String: Person.Lease]] = [:]
    /// The unread part of inboxes.
    var unread: [PersonKey: [DecisionWrites.Kept]] = [:]
    /// When the badges of these people are corrected.
    var badges: [PersonKey: Timestamp] = [:]
    var waiting: [HeldItem] = []
    var buckets: [BucketKey: DigestStore.Row] = [:]
    /// By item, the moment up to which it is done.
    var done: [ItemKey: Timestamp] = [:]
    private var seen: Set<UUID> = []

    init(_ ruleSets: RuleSets) { self.ruleSets = ruleSets }

    /// Something happens, after everything that is due before it.
    mutating func happen(_ event: DomainEvent, at now: Timestamp) {
        advance(to: now)
        switch ruleSets.decide(event, now: now) {
        case .unknownApp: refuse(event, now, "there is no rule file for \(event.app)")
        case .unknownType: refuse(event, now, "\(event.app) does not know the event \(event.type)")
        case .expired: refuse(event, now, "its expirytime has passed")
        case .unrenderable(let error): refuse(event, now, "\(error)")
        case .notify(let drafts, let signals, let ruleSet):
            let event = EventCase(event, ruleSet: ruleSet, arrivedAt: now, drafts: drafts, signals: signals)
            do {
                _ = try EventDraft(event)
            } catch {
                return refuse(event.event, now, "\(error)")
            }
            guard seen.insert(event.record.key).inserted else {
                return refuse(event.event, now, "an event with this source and id came before")
            }
            take(event, now)
            decide(event, now)
        }
    }

    /// Everything that is due up to a moment happens: at each moment digests close first, then held notifications are
    /// judged, the longest held first, then badges are corrected.
    mutating func advance(to moment: Timestamp) {
        while let next = nextDue, next <= moment {
            for row in buckets.values.filter({ $0.isDue(next) }).sorted(by: { $0.key < $1.key }) { close(row, next) }
            let due = waiting.filter { $0.isDue(next) }.sorted(by: HeldItem.precedes)
            waiting.removeAll { $0.isDue(next) }
            let released = due.compactMap { release($0, next) }
            // As in the service, the badges of one moment count everything that was kept at that moment.
            for one in released { tell(one, next) }
            for (person, _) in badges.filter({ $0.value <= next }).sorted(by: { $0.key < $1.key }) {
                badges[person] = nil
                correct(person, next)
            }
        }
    }

    private var nextDue: Timestamp? {
        (waiting.compactMap(\.dueAt) + buckets.values.compactMap(\.closing.next) + badges.values).min()
    }

    private mutating func refuse(_ event: DomainEvent, _ now: Timestamp, _ reason: String) {
        refusals.append(Refusal(at: now, event: event.id, reason: reason))
    }
}

extension HeldItem {
    fileprivate func isDue(_ now: Timestamp) -> Bool { dueAt.map { $0 <= now } ?? false }
}

extension DigestStore.Row {
    fileprivate func isDue(_ now: Timestamp) -> Bool { closing.next.map { $0 <= now } ?? false }
}
