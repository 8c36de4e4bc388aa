import FoundationEssentials
import Messaging
import Metrics
import PushProtocol

/// Domain events in, notifications out.
///
/// What is decided is kept before it is published, and published before the event is settled. A crash in between brings
/// the event back, and it is decided again, kept without effect, and published again under the same ids; only an event
/// whose every notification has been answered is passed over. So nothing is lost, and nothing is kept twice.
struct EventHandler: StageHandler {
    let book: RuleBook
    let store: DecisionStore
    /// The clock that expirations are held against.
    let now: @Sendable () -> Timestamp

    init(book: RuleBook, store: DecisionStore, now: @escaping @Sendable () -> Timestamp = { .now }) {
        self.book = book
        self.store = store
        self.now = now
    }

    func decode(_ inbound: Inbound) throws(WireError) -> DomainEvent {
        try CloudEvents.decode(
            routingKey: inbound.routingKey, contentType: inbound.contentType, headers: inbound.headers,
            body: inbound.body)
    }

    func handle(_ batch: [Delivery<DomainEvent>]) async throws -> [Verdict] {
        let answers = batch.map(answer)
        let settled = try await store.keep(answers.compactMap(\.publication?.record))
        var seen: Set<UUID> = []
        return answers.map { answer in
            switch answer {
            case .settle(let disposition): return Verdict(disposition)
            case .publish(let publication):
                let key = publication.record.key
                // The first copy in the batch stays unsettled until all it says is confirmed, so the others can go.
                guard !settled.contains(key), seen.insert(key).inserted else {
                    return Verdict(.discard(.duplicate))
                }
                publication.count()
                return .done(publication.outbound)
            }
        }
    }

    /// What one event comes to, before it is known whether it was seen before.
    private func answer(_ delivery: Delivery<DomainEvent>) -> Answer {
        let event = delivery.message
        switch book.decide(event, now: now()) {
        case .unknownApp: return .settle(.discard(.unknownApp(event)))
        case .unknownType: return .settle(.discard(.unknownType(event)))
        case .expired: return .settle(.discard(.expired))
        case .unrenderable(let error): return .settle(.deadLetter(.unrenderable(error)))
        case .notify(let drafts, let ruleSet):
            let arrival = delivery.inbound.firstSeen
            let notifications = drafts.flatMap { $0.notifications(about: event, arrivedAt: arrival) }
            do {
                return .publish(
                    Publication(
                        record: EventRecord(
                            event, ruleSet: ruleSet.version, arrivedAt: arrival, notifications: notifications),
                        notifications: notifications,
                        outbound: try notifications.map { notification throws(WireError) in
                            try Outbound(
                                notification, to: .notifications,
                                routingKey: RoutingKey.notification(notification.lane, notification.app))
                        }))
            } catch {
                return .settle(.deadLetter(Reason(code: error.code, detail: "the notification: \(error)")))
            }
        }
    }
}

extension EventHandler {
    private enum Answer {
        case settle(Disposition)
        case publish(Publication)

        var publication: Publication? {
            switch self {
            case .settle: nil
            case .publish(let publication): publication
            }
        }
    }

    /// What is kept and what is published about one event.
    private struct Publication {
        var record: EventRecord
        var notifications: [Notification]
        var outbound: [Outbound]

        /// Apps and rules are the operator's words, so these labels are bounded.
        func count() {
            for notification in notifications {
                Counter(
                    label: "heliograph_rules_notified_users_total",
                    dimensions: [
                        ("app", notification.app.rawValue), ("rule", notification.rule),
                        ("lane", notification.lane.rawValue),
                    ]
                ).increment(by: notification.recipients.count)
            }
        }
    }
}

extension Reason {
    fileprivate static let duplicate = Reason(code: "duplicate", detail: "the event was seen before and is dealt with")
    fileprivate static let expired = Reason(code: "expired", detail: "the event's expirytime has passed")

    fileprivate static func unknownApp(_ event: DomainEvent) -> Reason {
        Reason(code: "unknown-app", detail: "there is no rule file for \(event.app)")
    }

    fileprivate static func unknownType(_ event: DomainEvent) -> Reason {
        Reason(code: "unknown-type", detail: "the rule file of \(event.app) does not know this type of event")
    }

    fileprivate static func unrenderable(_ error: RenderError) -> Reason {
        let code =
            switch error.problem {
            case .missing: "missing-field"
            case .null, .unsuitable: "invalid-field"
            }
        return Reason(code: code, detail: "\(error)")
    }
}
