/// The exchanges of the bus.
package enum ExchangeName: Hashable, Sendable {
    case events, notifications, pushes, outcomes, devices
    /// Topic exchange for the reports of all stages; see ``CensusReport``.
    case census
    /// Topic exchange for requests to create and delete broadcast channels, and for their answers.
    case channels
    /// Topic exchange behind an input exchange. Routes each message to its app's queue.
    case byApp(InputExchange)
    /// Topic exchange, the alternate of ``byApp(_:)``. Routes messages of apps without a queue.
    case otherApps(InputExchange)
    /// Topic exchange with one binding, to the level's TTL queue. The routing key is the name of the work queue to
    /// return to, so a topic permission restricts each stage to its own queues.
    case retry(RetryLevel)
    /// Direct exchange, by queue name, for expired retries. Only the broker and operators publish to it.
    case `return`
    /// Topic exchange, by queue name, for dead letters. Topic permissions restrict it as for retries.
    case dead
    /// Direct exchange, by stream name, for markers that let readers find a stream's end. See ``StreamName``.
    case marks

    package var name: String {
        switch self {
        case .events: "events"
        case .notifications: "notifications"
        case .pushes: "pushes"
        case .outcomes: "outcomes"
        case .devices: "devices"
        case .census: "census"
        case .channels: "channels"
        case .byApp(let input): "\(input.rawValue).by-app"
        case .otherApps(let input): "\(input.rawValue).other-apps"
        case .retry(let level): "retry.\(level.rawValue)"
        case .return: "return"
        case .dead: "dead"
        case .marks: "marks"
        }
    }
}

/// An exchange whose consumers serve all apps. Each configured app has a queue, so one app's backlog does not delay
/// another.
package enum InputExchange: String, Hashable, Sendable, CaseIterable {
    case events, notifications, devices
}

/// A RabbitMQ stream. Each reader reads it from an offset in the past to the end, and follows it; reading removes
/// nothing.
///
/// RabbitMQ does not report a stream's end. A reader therefore publishes a marker (exchange `marks`, routing key the
/// stream's name, no body). When it reads its own marker, it has read all messages confirmed before.
package enum StreamName: String, Hashable, Sendable, CaseIterable {
    /// Device events that may revoke pushes, and revoked notifications. Every sender process reads all of them.
    case senderRevocations = "senders.revocations"

    /// How long messages are kept and count.
    package var retention: Duration { .seconds(7 * 86_400) }
}

/// A work queue: the input of one stage.
package enum WorkQueue: Hashable, Sendable {
    /// Events of apps without their own queue, and events published before an app had one.
    case rulesEvents
    case rulesAppEvents(AppID)
    case rulesOutcomes
    /// Users who requested erasure.
    case rulesErasures
    /// The reports of all stages; see ``CensusReport``.
    case rulesCensus
    /// Answers to requests about broadcast channels; see ``ChannelAnswer``.
    case rulesChannels
    /// Notifications of apps without their own queue, and those published before an app had one.
    case registryNotifications(Lane)
    case registryAppNotifications(Lane, AppID)
    /// Commands whose routing key names no app, or an app without its own queue.
    case registryDevices
    case registryAppDevices(AppID)
    /// The positions of campaigns in their audiences; used by the registry only.
    case registryCampaigns
    /// One queue for each app, so pausing an app means cancelling one consumer.
    case senderPushes(Provider, Lane, AppID)
    /// Requests about broadcast channels; see ``ChannelRequest``.
    case apnsSenderChannels
    case feedbackOutcomes
    /// Erased registrations.
    case feedbackErasures
    /// The reports of one webhook. One queue for each, so a slow endpoint delays no other.
    case webhookReports(AppID, WebhookName)

    package var name: String {
        switch self {
        case .rulesEvents: "rules.events"
        case .rulesAppEvents(let app): "rules.events.app.\(app.rawValue)"
        case .rulesOutcomes: "rules.outcomes"
        case .rulesErasures: "rules.erasures"
        case .rulesCensus: "rules.census"
        case .rulesChannels: "rules.channels"
        case .apnsSenderChannels: "apns-sender.channels"
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
        case .webhookReports(let app, let name): "webhook-sender.reports.\(app.rawValue).\(name.rawValue)"
        }
    }

    /// The name of this queue's dead-letter queue.
    package var deadName: String { "\(name).dead" }

    /// The app of this queue; `nil` for a queue of all apps.
    package var app: AppID? {
        switch self {
        case .rulesAppEvents(let app), .registryAppNotifications(_, let app), .registryAppDevices(let app),
            .senderPushes(_, _, let app), .webhookReports(let app, _):
            app
        case .rulesEvents, .rulesOutcomes, .rulesErasures, .rulesCensus, .rulesChannels, .registryNotifications,
            .registryDevices, .registryCampaigns, .apnsSenderChannels, .feedbackOutcomes, .feedbackErasures:
            nil
        }
    }

    /// The event queues of rules: one for each app, and one for all others.
    package static func events(of apps: [AppID]) -> [WorkQueue] { [.rulesEvents] + apps.map(WorkQueue.rulesAppEvents) }

    /// The notification queues of the registry: two for each app, and two for all others.
    package static func notifications(of apps: [AppID]) -> [WorkQueue] {
        Lane.allCases.flatMap { lane in
            [.registryNotifications(lane)] + apps.map { .registryAppNotifications(lane, $0) }
        }
    }

    /// The command queues of the registry: one for each app, and one for all others.
    package static func devices(of apps: [AppID]) -> [WorkQueue] {
        [.registryDevices] + apps.map(WorkQueue.registryAppDevices)
    }

    /// All work queues of a bus with `apps`, in a stable order.
    package static func all(apps: [AppID], reports: ReportConsumers = .none) -> [WorkQueue] {
        let apps = apps.sorted()
        let fixed: [WorkQueue] = [
            .rulesOutcomes, .rulesErasures, .rulesCensus, .rulesChannels, .registryCampaigns, .apnsSenderChannels,
            .feedbackOutcomes, .feedbackErasures,
        ]
        let divided = events(of: apps) + notifications(of: apps) + devices(of: apps)
        let senders = apps.flatMap { app in
            Provider.allCases.flatMap { provider in
                Lane.allCases.map { WorkQueue.senderPushes(provider, $0, app) }
            }
        }
        return fixed + divided + senders + reports.webhooks.map(\.queue)
    }
}

/// A retry delay. Each has its own queue, because a TTL queue expires messages only at its head.
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

    /// The shortest level of at least `delay`, or the longest level.
    package init(atLeast delay: Duration) {
        self = RetryLevel.allCases.first { $0.delay >= delay } ?? .hours6
    }

    /// The level after the first attempt, the second and so on. The longest level repeats.
    package init(afterAttempt attempt: Int) {
        self = RetryLevel.allCases[min(max(attempt, 1), RetryLevel.allCases.count) - 1]
    }

    package var queueName: String { "retry.\(rawValue)" }
}

/// Routing keys of published messages.
package enum RoutingKey {
    /// Exchange `devices`: the position of a campaign.
    package static let campaignCursor = "campaign.cursor"

    package static func notification(_ lane: Lane, _ app: AppID) -> String { "\(lane.rawValue).\(app.rawValue)" }

    /// Exchange `notifications`: revoked notifications of an app.
    package static func revocation(_ app: AppID) -> String { "revoked.\(app.rawValue)" }

    /// Exchange `channels`: a request about an app's broadcast channel.
    package static func channelRequest(_ app: AppID) -> String { "request.\(app.rawValue)" }

    /// Exchange `channels`: the answer to it.
    package static func channelAnswer(_ app: AppID) -> String { "answer.\(app.rawValue)" }

    package static func push(_ provider: Provider, _ lane: Lane, _ app: AppID) -> String {
        "\(provider.rawValue).\(lane.rawValue).\(app.rawValue)"
    }

    package static func outcomes(_ origin: Outcomes.Origin, _ disposition: Outcome.Answer.Disposition) -> String {
        "\(origin.rawValue).\(disposition.rawValue)"
    }

    /// Acceptances in an environment other than the push's, from which feedback corrects the registration.
    package static func acceptedInOtherEnvironment(_ origin: Outcomes.Origin) -> String {
        "\(outcomes(origin, .accepted)).elsewhere"
    }
}
