import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import RuleEngine
import RuleLanguage
import ServiceKit

/// Turns domain events into notifications.
///
/// Decisions are stored before they are published, and published before the event is acknowledged. After a crash the
/// event is redelivered, and the stored decisions are published again under the same ids. An event is skipped once all
/// its pushes have outcomes. So no notification is lost, and none is stored or charged twice.
struct EventHandler: StageHandler {
    let currentRules: CurrentRules
    let store: DecisionStore
    private let bulkThrottle: BulkThrottle
    /// The clock for expiry, caps and quiet hours, which all processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    private let logger: Logger

    init(
        currentRules: CurrentRules, store: DecisionStore, bulkThrottle: BulkThrottle = BulkThrottle(),
        now: @escaping @Sendable () async throws -> Timestamp, logger: Logger = .rules
    ) {
        self.currentRules = currentRules
        self.store = store
        self.bulkThrottle = bulkThrottle
        self.now = now
        self.logger = logger
    }

    func decode(_ inbound: Inbound) throws(WireError) -> DomainEvent {
        try CloudEvents.decode(
            routingKey: inbound.routingKey, contentType: inbound.contentType, headers: inbound.headers,
            body: inbound.body)
    }

    func traceparent(of event: DomainEvent) -> String? { event.traceparent }

    /// The maximum number of recipients in one transaction, unless a single event has more. They take a few hundred
    /// milliseconds of the statement timeout of five seconds.
    static let recipientsPerBatch = 2000

    /// - Parameters:
    ///   - isOfOneApp: whether the queue holds the events of one app.
    ///   - connections: the size of the process's database pool.
    static func policy(isOfOneApp: Bool, connections: Int) -> StagePolicy {
        var policy = isOfOneApp ? StagePolicy.perApp(connections: connections) : StagePolicy()
        policy.batchWeight = recipientsPerBatch
        return policy
    }

    /// An upper bound for the recipients that an event names: the elements of all lists in its data. Group members are
    /// not included; a batch with too many is halved when its statement times out.
    func weight(of event: DomainEvent) -> Int { max(1, event.data.listedElements) }

    func handle(_ batch: [Delivery<DomainEvent>]) async throws -> [Verdict] {
        let now = try await now()
        let ruleSets = currentRules.ruleSets
        var answers = batch.map { answer($0, by: ruleSets, now: now) }
        // An event may expire after its decision, and before its notifications are published. It is published again, so that
        // each push ends with the outcome `expired`.
        let expired = answers.indices.filter { answers[$0].isExpired }
        let decided = try await store.decided(among: expired.map { EventRecord.key(of: batch[$0].message) })
        for index in expired where decided.contains(EventRecord.key(of: batch[index].message)) {
            answers[index] = answer(batch[index], by: ruleSets, now: now, isDecided: true)
        }
        let copies = try batch.map { try self.copies(of: $0, by: ruleSets) }
        // The first copy of an event stays unacknowledged until its messages are confirmed, so the other copies can go.
        var first: [UUID: Int] = [:]
        for (index, answer) in answers.enumerated() {
            if case .notify(let draft) = answer, first[draft.event.record.key] == nil {
                first[draft.event.record.key] = index
            }
        }
        let cases = first.values.sorted().compactMap { answers[$0].draft?.event }
        for draft in cases.lazy.flatMap(\.drafts) {
            bulkThrottle.noteTraffic(on: draft.rendered.lane)
        }
        let batchDecisions = try await MessageSpan.share(
            [MessageSpan](of: batch), "decide", isRequest: true, ["db.system.name": "postgresql"]
        ) {
            try await store.storeDecisions(cases, now: now)
        }
        return answers.enumerated().map { index, answer in
            switch answer {
            case .settle(let disposition): return Verdict(disposition, outbound: copies[index])
            case .expired: return Verdict(.discard(.expired), outbound: copies[index])
            case .notify(let draft):
                let key = draft.event.record.key
                if first[key] == index, case .early = batchDecisions.answers[key] {
                    return Verdict(.postpone(after: .seconds(5), .early))
                }
                guard first[key] == index,
                    case .decided(let answers, let drafts) = batchDecisions.answers[key]
                else {
                    // Also of a repeated event: only its acknowledgement proves that the copies were published.
                    return Verdict(.discard(.duplicate), outbound: copies[index])
                }
                batch[index].span?.describe(answers, drafts)
                log(answers, of: batch[index])
                var verdict = draft.verdict(answers, drafts, unread: batchDecisions.unread)
                verdict.outbound += copies[index]
                return verdict
            }
        }
    }

    /// Evaluates the rules for one event, without the settings of its recipients.
    private func answer(
        _ delivery: Delivery<DomainEvent>, by ruleSets: RuleSets, now: Timestamp, isDecided: Bool = false
    ) -> Answer {
        var event = delivery.message
        if let span = delivery.span {
            span.describe(event)
            // Its notifications, also held ones and later stages, continue the trace here.
            event.traceparent = span.traceparent
        }
        switch ruleSets.evaluate(event, now: now, arrivedAt: delivery.inbound.firstSeen, isDecided: isDecided) {
        case .unknownApp: return .settle(.deadLetter(.unknownApp(event)))
        case .unknownType: return .settle(.discard(.unknownType(event)))
        case .expired: return .expired
        case .unrenderable(let error): return .settle(.deadLetter(.unrenderable(error)))
        case .notify(let drafts, let signals, let ruleSet):
            let event = EventCase(
                event, ruleSet: ruleSet, arrivedAt: delivery.inbound.firstSeen, drafts: drafts, signals: signals)
            do {
                return .notify(try EventDraft(event, arrivedAt: delivery.inbound.eventArrival))
            } catch {
                return .settle(.deadLetter(.tooLarge(error)))
            }
        }
    }

    /// The copies for apps that borrow the event. An event is copied whatever its own app's rules decide.
    private func copies(of delivery: Delivery<DomainEvent>, by ruleSets: RuleSets) throws(WireError) -> [Outbound] {
        let borrowers = ruleSets.borrowers(of: delivery.message)
        guard !borrowers.isEmpty else { return [] }
        return try delivery.message.copies(for: borrowers, arrivedAt: delivery.inbound.eventArrival)
    }

    /// Logs each decision, at `debug`. The decision log has them at any level, with their reasons.
    private func log(_ answers: [UUID: RuleDecision.Answer], of delivery: Delivery<DomainEvent>) {
        guard logger.logLevel <= .debug else { return }
        var metadata = delivery.logMetadata
        for (notification, answer) in answers {
            metadata[LogKey.notification] = .string(Hexadecimal.text(of: notification))
            logger.debug("Notification decided: \(answer.word)", metadata: metadata)
        }
    }

    private enum Answer {
        case settle(Disposition)
        case expired
        case notify(EventDraft)

        var draft: EventDraft? {
            switch self {
            case .settle, .expired: nil
            case .notify(let draft): draft
            }
        }

        var isExpired: Bool {
            switch self {
            case .expired: true
            case .settle, .notify: false
            }
        }
    }
}

/// An event, with the messages for the usual case that all named recipients get a push.
struct EventDraft {
    let event: EventCase
    private let everything: [Outbound]
    private let arrivedAt: Timestamp
    /// Whether the event alone determines recipients and texts.
    private let isPlain: Bool

    /// - Throws: if a message exceeds the limits, before anything is decided.
    init(_ event: EventCase, arrivedAt: Timestamp) throws(WireError) {
        self.event = event
        self.arrivedAt = arrivedAt
        isPlain = event.drafts.allSatisfy {
            $0.groupReferences.isEmpty && $0.localizer == nil && $0.replacement == nil && $0.channels == nil
        }
        try event.checkReplacementSizes()
        everything = try EventDraft.outbound(
            event.drafts.flatMap { $0.notifications(to: $0.recipients, quietly: false) }, arrivedAt)
    }

    /// The messages to publish for these decisions.
    ///
    /// - Parameters:
    ///   - drafts: the notifications with all their recipients.
    ///   - unread: the unread counts of users whose badge shows them.
    func verdict(
        _ answers: [UUID: RuleDecision.Answer], _ drafts: [NotificationDraft],
        unread: [PersonKey: Int]
    ) -> Verdict {
        count(answers, drafts)
        let isForAll =
            isPlain
            && event.drafts.allSatisfy { draft in
                !draft.countsUnread && draft.recipients.allSatisfy { answers[$0.notification] == .push }
                    && (!draft.hasUnknownRecipients || draft.isAnnounced(answers))
            }
        guard !isForAll else { return .done(everything) }
        do {
            let messages = try EventDraft.outbound(
                drafts.flatMap { $0.notifications(answers, unread: unread) }, arrivedAt)
            // Before the replacing pushes, so that a sender seldom sends an original after its replacement.
            let revocations = try NotificationRevocation.outbound(
                revoking: drafts.compactMap { $0.revokedOriginal(answers) }, of: event.record.app,
                at: event.record.arrivedAt)
            return .done(revocations + messages)
        } catch {
            return Verdict(.deadLetter(.tooLarge(error)))
        }
    }

    private static func outbound(
        _ notifications: [Notification], _ arrivedAt: Timestamp
    ) throws(WireError) -> [Outbound] {
        try notifications.map { notification throws(WireError) in
            try Outbound(
                notification, to: .notifications,
                routingKey: RoutingKey.notification(notification.lane, notification.app), arrivedAt: arrivedAt)
        }
    }

    /// Apps and rules come from the configuration, so these labels are bounded.
    private func count(_ answers: [UUID: RuleDecision.Answer], _ drafts: [NotificationDraft]) {
        for draft in drafts {
            var counts: [String: Int] = [:]
            for recipient in draft.recipients {
                if let answer = answers[recipient.notification] { counts[answer.word, default: 0] += 1 }
            }
            let labels = [("app", draft.rendered.app.rawValue), ("rule", draft.rendered.rule)]
            for (word, count) in counts {
                Counter(label: "heliograph_rules_decisions_total", dimensions: labels + [("answer", word)])
                    .increment(by: count)
            }
            let told = counts["push", default: 0] + counts["push-quietly", default: 0]
            guard told > 0 else { continue }
            Counter(
                label: "heliograph_rules_notified_users_total",
                dimensions: labels + [("lane", draft.rendered.lane.rawValue)]
            ).increment(by: told)
        }
    }
}

extension JSONValue {
    /// The number of elements of all lists, nested lists included.
    fileprivate var listedElements: Int {
        switch self {
        case .array(let elements): elements.reduce(elements.count) { $0 + $1.listedElements }
        case .object(let members): members.values.reduce(0) { $0 + $1.listedElements }
        case .null, .bool, .int, .double, .string: 0
        }
    }
}

extension Reason {
    fileprivate static let duplicate = Reason(code: "duplicate", detail: "the event was received before and is done")
    fileprivate static let early = Reason(
        code: "early-replacement", detail: "the event replaces a notification that is not known yet")
    fileprivate static let expired = Reason(code: "expired", detail: "the event's expirytime has passed")

    fileprivate static func tooLarge(_ error: WireError) -> Reason {
        Reason(code: error.code, detail: "the notification: \(error)")
    }

    fileprivate static func unknownApp(_ event: DomainEvent) -> Reason {
        Reason(code: "unknown-app", detail: "there is no rule file for \(event.app); add it and replay, or drop")
    }

    fileprivate static func unknownType(_ event: DomainEvent) -> Reason {
        Reason(code: "unknown-type", detail: "the rule file of \(event.app) does not list this event type")
    }

    fileprivate static func unrenderable(_ error: RenderError) -> Reason {
        let code =
            switch error.problem {
            case .missing: "missing-field"
            case .null, .unsuitable, .refused: "invalid-field"
            }
        return Reason(code: code, detail: "\(error)")
    }
}
