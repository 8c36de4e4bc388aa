/// The exchanges of the bus.
package enum ExchangeName: Hashable, Sendable {
    case events, notifications, pushes, outcomes, devices
    /// Fanout to the level's one TTL queue.
    case retry(RetryLevel)
    /// Where expired retries come back: direct, by queue name.
    case `return`
    /// Where what we gave up on goes: direct, by queue name.
    case dead
    /// How who reads a stream finds its end: direct, by the stream's name. See ``StreamName``.
    case marks

    package var name: String {
        switch self {
        case .events: "events"
        case .notifications: "notifications"
        case .pushes: "pushes"
        case .outcomes: "outcomes"
        case .devices: "devices"
        case .retry(let level): "retry.\(level.rawValue)"
        case .return: "return"
        case .dead: "dead"
        case .marks: "marks"
        }
    }
}

/// A stream: what each of its readers reads from some time ago to the end, and then on. Reading takes nothing away.
///
/// The broker does not tell where a stream ends. So a reader publishes a mark to it (exchange `marks`, the stream's name
/// as the routing key, no body): when it reads its own mark, it has read everything that was confirmed before.
package enum StreamName: String, Hashable, Sendable, CaseIterable {
    /// The device events that may revoke pushes under way, and revoked notifications. Every sender process reads them all.
    case senderRevocations = "senders.revocations"

    /// For how long what is in it counts, and is kept.
    package var memory: Duration { .seconds(7 * 86_400) }
}

/// A work queue: what one stage takes its input from.
package enum WorkQueue: Hashable, Sendable {
    case rulesEvents
    case rulesOutcomes
    /// Who asked to be forgotten.
    case rulesErasures
    case registryNotifications(Lane)
    case registryDevices
    /// Where each campaign's walks through its audience stand: the registry's own.
    case registryCampaigns
    /// One for each app, so that pausing one app's lane is cancelling one consumer.
    case senderPushes(Provider, Lane, AppID)
    case feedbackOutcomes
    /// Whose registrations were erased.
    case feedbackErasures

    package var name: String {
        switch self {
        case .rulesEvents: "rules.events"
        case .rulesOutcomes: "rules.outcomes"
        case .rulesErasures: "rules.erasures"
        case .registryNotifications(let lane): "token-registry.notifications.\(lane.rawValue)"
        case .registryDevices: "token-registry.devices"
        case .registryCampaigns: "token-registry.campaigns"
        case .senderPushes(let provider, let lane, let app):
            "\(provider.rawValue)-sender.pushes.\(lane.rawValue).\(app.rawValue)"
        case .feedbackOutcomes: "feedback.outcomes"
        case .feedbackErasures: "feedback.erasures"
        }
    }

    /// Where what this queue's stage gave up on waits for a person.
    package var deadName: String { "\(name).dead" }

    /// Every work queue of a bus that carries `apps`, in a stable order.
    package static func all(apps: [AppID]) -> [WorkQueue] {
        let fixed: [WorkQueue] =
            [
                .rulesEvents, .rulesOutcomes, .rulesErasures, .registryDevices, .registryCampaigns, .feedbackOutcomes,
                .feedbackErasures,
            ]
            + Lane.allCases.map { .registryNotifications($0) }
        let senders = apps.sorted().flatMap { app in
            Provider.allCases.flatMap { provider in
                Lane.allCases.map { WorkQueue.senderPushes(provider, $0, app) }
            }
        }
        return fixed + senders
    }
}

/// How long a message waits before it is tried again: one queue a level, because a TTL queue only expires at its head.
package enum RetryLevel: String, Hashable, Sendable, CaseIterable {
    case seconds5 = "5s"
    case seconds30 = "30s"
    case minutes2 = "2m"
    case minutes15 = "15m"
    case hour1 = "1h"
    case hours6 = "6h"

    package var delay: Duration {
        switch self {
        case .seconds5: .seconds(5)
        case .seconds30: .seconds(30)
        case .minutes2: .seconds(120)
        case .minutes15: .seconds(900)
        case .hour1: .seconds(3600)
        case .hours6: .seconds(21600)
        }
    }

    /// The shortest level that waits at least `delay`, or the longest there is.
    package init(atLeast delay: Duration) {
        self = RetryLevel.allCases.first { $0.delay >= delay } ?? .hours6
    }

    package var queueName: String { "retry.\(rawValue)" }
}

/// Routing keys that stages publish with.
package enum RoutingKey {
    /// On the exchange `devices`: where a campaign's walk stands.
    package static let campaignCursor = "campaign.cursor"

    package static func notification(_ lane: Lane, _ app: AppID) -> String { "\(lane.rawValue).\(app.rawValue)" }

    /// On the exchange `notifications`: which notifications of the app are revoked.
    package static func revocation(_ app: AppID) -> String { "revoked.\(app.rawValue)" }

    package static func push(_ provider: Provider, _ lane: Lane, _ app: AppID) -> String {
        "\(provider.rawValue).\(lane.rawValue).\(app.rawValue)"
    }

    package static func outcomes(_ origin: Outcomes.Origin, _ disposition: Outcome.Answer.Disposition) -> String {
        "\(origin.rawValue).\(disposition.rawValue)"
    }

    /// Acceptances in another environment than the push was for: a correction follows from them.
    package static func acceptedElsewhere(_ origin: Outcomes.Origin) -> String {
        "\(outcomes(origin, .accepted)).elsewhere"
    }
}
