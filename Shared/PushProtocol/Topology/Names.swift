/// The exchanges of the bus.
package enum ExchangeName: Hashable, Sendable {
    case events, notifications, pushes, outcomes, devices
    /// Topic exchange behind an input exchange: takes each message to the queue of its app.
    case byApp(AppInput)
    /// Topic exchange, the alternate of ``byApp(_:)``: takes the messages of apps that have no queue of their own.
    case otherApps(AppInput)
    /// Topic exchange with one binding, to the level's TTL queue. The routing key is the name of the work queue to come
    /// back to, so that a topic permission holds each stage to its own queues.
    case retry(RetryLevel)
    /// Expired retries come back here: direct, by queue name. Only the broker and an operator publish to it.
    case `return`
    /// Dead letters: topic, by queue name, with a topic permission as for retries.
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
        case .byApp(let input): "\(input.rawValue).by-app"
        case .otherApps(let input): "\(input.rawValue).other-apps"
        case .retry(let level): "retry.\(level.rawValue)"
        case .return: "return"
        case .dead: "dead"
        case .marks: "marks"
        }
    }
}

/// An exchange whose messages are for stages that serve all apps. Each configured app has a queue of its own there, so that
/// one app's flood does not delay another app.
package enum AppInput: String, Hashable, Sendable, CaseIterable {
    case events, notifications, devices
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
    /// Events of apps without a queue of their own, and events from before apps had one.
    case rulesEvents
    case rulesAppEvents(AppID)
    case rulesOutcomes
    /// Who asked to be forgotten.
    case rulesErasures
    /// Notifications of apps without a queue of their own, and those from before apps had one.
    case registryNotifications(Lane)
    case registryAppNotifications(Lane, AppID)
    /// Commands whose routing key names no app, or an app without a queue of its own.
    case registryDevices
    case registryAppDevices(AppID)
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
        case .rulesAppEvents(let app): "rules.events.app.\(app.rawValue)"
        case .rulesOutcomes: "rules.outcomes"
        case .rulesErasures: "rules.erasures"
        case .registryNotifications(let lane): "token-registry.notifications.\(lane.rawValue)"
        case .registryAppNotifications(let lane, let app):
            "token-registry.notifications.\(lane.rawValue).app.\(app.rawValue)"
        case .registryDevices: "token-registry.devices"
        case .registryAppDevices(let app): "token-registry.devices.app.\(app.rawValue)"
        case .registryCampaigns: "token-registry.campaigns"
        case .senderPushes(let provider, let lane, let app):
            "\(provider.rawValue)-sender.pushes.\(lane.rawValue).\(app.rawValue)"
        case .feedbackOutcomes: "feedback.outcomes"
        case .feedbackErasures: "feedback.erasures"
        }
    }

    /// Where what this queue's stage gave up on waits for a person.
    package var deadName: String { "\(name).dead" }

    /// The app whose queue this is; `nil` for a queue of all apps.
    package var app: AppID? {
        switch self {
        case .rulesAppEvents(let app), .registryAppNotifications(_, let app), .registryAppDevices(let app),
            .senderPushes(_, _, let app):
            app
        case .rulesEvents, .rulesOutcomes, .rulesErasures, .registryNotifications, .registryDevices,
            .registryCampaigns, .feedbackOutcomes, .feedbackErasures:
            nil
        }
    }

    /// The queues that rules take events from: one of each app, and the one of all others.
    package static func events(of apps: [AppID]) -> [WorkQueue] { [.rulesEvents] + apps.map(WorkQueue.rulesAppEvents) }

    /// The queues that the registry takes notifications from: two of each app, and the two of all others.
    package static func notifications(of apps: [AppID]) -> [WorkQueue] {
        Lane.allCases.flatMap { lane in
            [.registryNotifications(lane)] + apps.map { .registryAppNotifications(lane, $0) }
        }
    }

    /// The queues that the registry takes device commands from: one of each app, and the one of all others.
    package static func devices(of apps: [AppID]) -> [WorkQueue] {
        [.registryDevices] + apps.map(WorkQueue.registryAppDevices)
    }

    /// Every work queue of a bus that carries `apps`, in a stable order.
    package static func all(apps: [AppID]) -> [WorkQueue] {
        let apps = apps.sorted()
        let fixed: [WorkQueue] = [
            .rulesOutcomes, .rulesErasures, .registryCampaigns, .feedbackOutcomes, .feedbackErasures,
        ]
        let divided = events(of: apps) + notifications(of: apps) + devices(of: apps)
        let senders = apps.flatMap { app in
            Provider.allCases.flatMap { provider in
                Lane.allCases.map { WorkQueue.senderPushes(provider, $0, app) }
            }
        }
        return fixed + divided + senders
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
