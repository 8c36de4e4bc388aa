import FoundationEssentials
import PushProtocol
import RuleEngine
import RuleLanguage

/// A dry run of rule files: makes the decisions of the service without database, bus and clock.
///
/// `DryRunDifferentialTests` compares it with the service on a real database.
struct DryRun {
    /// One decision for one user, as `rules.decision` would store it, or one correction of a badge.
    struct PredictedDecision: Hashable, Sendable {
        var at: Timestamp
        var app: AppID
        /// The upstream's event id; `-` for a correction of a badge.
        var event: String
        var rule: String
        var user: UserID
        var decision: RuleDecision
        /// The message to this user alone; `nil` if nothing is pushed.
        var notification: Notification?
        /// The new item in the user's inbox; `nil` if there is none.
        var kept: Content?
        /// The notification's id; `nil` for a withdrawal or a correction of a badge.
        var id: UUID?

        var content: Content? { notification?.content }
    }

    /// An event without decisions, and the reason.
    struct RefusedEvent: Hashable, Sendable {
        var at: Timestamp
        var event: String
        var reason: String
    }

    var ruleSets: RuleSets
    /// The end of quiet hours is spread over this time. The service uses ``RuleDecision/spread``; with zero a
    /// preview shows the end of the quiet hours.
    var spread = Duration.zero
    var people: [PersonKey: Person] = [:]
    var groups: [GroupKey: DryRunGroup] = [:]
    /// The users of segments, by the name of the segment: `tag city/berlin`, `everyone`.
    var segments: [String: [UserID]] = [:]
    var predictions: [PredictedDecision] = []
    var refusals: [RefusedEvent] = []
    /// The presence leases of users, by device.
    var leases: [PersonKey: [String: Person.Lease]] = [:]
    /// The unread inbox items of users.
    var unread: [PersonKey: [DecisionWrites.Kept]] = [:]
    /// The times of draft badge corrections.
    var badges: [PersonKey: Timestamp] = [:]
    var waiting: [HeldItem] = []
    var buckets: [BucketKey: DueBucket] = [:]
    /// The time up to which each item is done.
    var done: [ItemKey: Timestamp] = [:]
    /// The same for one user, whose receipt completed the item.
    var doneByUser: [ItemState.UserItem: Timestamp] = [:]
    /// The time up to which each item is revoked.
    var revoked = RevocationState()
    /// The item of each notification, and the time of its event.
    var about: [UUID: (item: ItemKey, saidAt: Timestamp)] = [:]
    /// The notifications of each item, rule and user, for events under `replace`.
    var originals: [ItemState.Slot: [DryRunOriginal]] = [:]
    /// The time of the latest replacement of each item and rule.
    var lastReplacement: [DryRunOriginal.Subject: Timestamp] = [:]
    private var seen: Set<UUID> = []

    init(_ ruleSets: RuleSets) { self.ruleSets = ruleSets }

    /// Processes an event, after everything that is due before it.
    mutating func process(_ event: DomainEvent, at now: Timestamp) {
        advance(to: now)
        decide(event, now)
        for app in ruleSets.borrowers(of: event) {
            var copy = event
            copy.app = app
            decide(copy, now)
        }
    }

    /// - Parameters:
    ///   - arrivedAt: `nil` stands for `now`.
    ///   - large: the rules whose recipients are decided later, in steps.
    mutating func decide(
        _ event: DomainEvent, _ now: Timestamp, arrivedAt: Timestamp? = nil, without large: Set<String> = []
    ) {
        let arrival = arrivedAt ?? now
        switch ruleSets.evaluate(event, now: now, arrivedAt: arrival) {
        case .unknownApp: refuse(event, now, "there is no rule file for \(event.app)")
        case .unknownType: refuse(event, now, "the rule file of \(event.app) does not list the event \(event.type)")
        case .expired: refuse(event, now, "its expirytime has passed")
        case .unrenderable(let error): refuse(event, now, "\(error)")
        case .notify(let drafts, let signals, let ruleSet):
            let event = EventCase(
                event, ruleSet: ruleSet, arrivedAt: arrival,
                drafts: large.isEmpty ? drafts : drafts.filter { !large.contains($0.rendered.rule) }, signals: signals)
            do {
                try event.checkSizes()
            } catch {
                return refuse(event.event, now, "\(error)")
            }
            guard seen.insert(event.record.key).inserted else {
                return refuse(event.event, now, "an event with this source and id came before")
            }
            take(event, now)
            predictDecisions(event, now)
            for page in event.drafts.flatMap({ pages(of: $0, event.event) }) { decide(page.domainEvent, now) }
        }
    }

    /// The pages of a segment whose users the people file names, without the users of the hold-out.
    private func pages(of draft: NotificationDraft, _ event: DomainEvent) -> [SegmentPage] {
        guard let segment = draft.segment, let named = segments[segment.audience.members.segmentName] else { return [] }
        let users = named.filter { !segment.audience.isHeldOut($0) }
        let (rule, campaign) = (draft.rendered.rule, segment.audience.campaign)
        guard !users.isEmpty else { return [.nobody(for: event, by: rule, campaign: campaign)] }
        return SegmentPage.pages(of: users, for: event, by: rule, campaign: campaign, range: 0, step: 0)
    }

    /// Processes everything that is due up to `moment`. At the same time, digests close first. Then held notifications
    /// are decided, the longest held first. Then badges are corrected.
    mutating func advance(to moment: Timestamp) {
        while let next = nextDue, next <= moment {
            for row in buckets.values.filter({ $0.isDue(next) }).sorted(by: { $0.key < $1.key }) { close(row, next) }
            let due = waiting.filter { $0.isDue(next) }.sorted(by: HeldItem.precedes)
            waiting.removeAll { $0.isDue(next) }
            let released = due.compactMap { release($0, next) }
            // As in the service, badges count all inbox items that were added at the same time.
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
        refusals.append(RefusedEvent(at: now, event: event.id, reason: reason))
    }
}

extension HeldItem {
    fileprivate func isDue(_ now: Timestamp) -> Bool { dueAt.map { $0 <= now } ?? false }
}

extension DueBucket {
    fileprivate func isDue(_ now: Timestamp) -> Bool { closing.next.map { $0 <= now } ?? false }
}

extension Audience.Members {
    /// The name of a segment in the people file.
    fileprivate var segmentName: String { String(decisionLabel.dropFirst().dropLast()) }
}
