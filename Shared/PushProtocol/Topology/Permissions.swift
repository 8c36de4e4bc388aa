/// The broker's users, each with its own credential.
package enum BusRole: String, Sendable, CaseIterable {
    /// The only role that may declare; used by `pushctl topology apply`.
    case topology
    case rules
    case tokenRegistry = "token-registry"
    case apnsSender = "apns-sender"
    case fcmSender = "fcm-sender"
    case webPushSender = "webpush-sender"
    case feedback
    /// Publishes the events of all apps that arrive over HTTP. It checks each caller's app.
    case eventsAPI = "events-api"
    /// Sends reports to webhooks.
    case webhookSender = "webhook-sender"
    /// `pushctl dead`: reads dead-letter queues, returns messages to them, and replays messages through `return`.
    case deadLetters = "dead-letters"
    /// An upstream service. Its topic permission restricts it to its app's routing keys, and it reads its app's reports
    /// (``upstreamPermissions(of:)``). It publishes events only: a device command names its app in the body, which the
    /// broker cannot check.
    case upstream
}

/// The three regular expressions of a RabbitMQ user.
package struct BusPermissions: Hashable, Sendable {
    package var configure: String
    package var write: String
    package var read: String

    package init(configure: String, write: String, read: String) {
        self.configure = configure
        self.write = write
        self.read = read
    }
}

/// The routing keys that a user may publish with on one topic exchange, as a regular expression. RabbitMQ checks them
/// on topic exchanges only (https://www.rabbitmq.com/docs/access-control#topic-authorisation).
///
/// RabbitMQ before 4.0 does not check the keys in the headers `CC` and `BCC`. Stages therefore accept a retried
/// message only under their own queue's name (`Inbound`).
package struct TopicPermission: Hashable, Sendable {
    package var exchange: ExchangeName
    package var write: String
}

extension BusRole {
    /// The minimum permissions of the role. No role may write to the default exchange, which reaches every queue.
    package var permissions: BusPermissions {
        switch self {
        case .topology: BusPermissions(configure: ".*", write: ".*", read: ".*")
        case .rules, .tokenRegistry, .apnsSender, .fcmSender, .webPushSender, .feedback, .webhookSender:
            stagePermissions
        case .deadLetters:
            BusPermissions(configure: "^$", write: "^(dead|return)$", read: Topology.deadLetters.pattern)
        case .upstream, .eventsAPI: BusPermissions(configure: "^$", write: "^events$", read: "^$")
        }
    }

    /// One entry for each topic exchange that the role may write to; empty for roles that may use any key.
    package var topicPermissions: [TopicPermission] {
        if self == .eventsAPI { return [TopicPermission(exchange: .events, write: #"^\#(Self.app)\."#)] }
        guard let queues = queuePattern else { return [] }
        let retries = RetryLevel.allCases.map { ExchangeName.retry($0) }
        return outputs.map { TopicPermission(exchange: $0.exchange, write: "^\($0.keys)$") }
            + (retries + [.dead]).map { TopicPermission(exchange: $0, write: "^\(queues)$") }
    }

    /// Restricts an upstream service of `app` to that app's events.
    package static func upstreamTopicPermissions(of app: AppID) -> [TopicPermission] {
        [TopicPermission(exchange: .events, write: #"^\#(app)\."#)]
    }

    /// The permissions of an upstream service of `app`: it also reads the queue of its app's reports.
    package static func upstreamPermissions(of app: AppID) -> BusPermissions {
        var permissions = upstream.permissions
        permissions.read = "^\(UpstreamQueue.name(of: app).replacing(".", with: #"\."#))$"
        return permissions
    }

    private var stagePermissions: BusPermissions {
        let direct = streams.isEmpty ? [] : [ExchangeName.marks.name]
        let write = outputs.map(\.exchange.name) + direct + [ExchangeName.dead.name, #"retry\.[0-9a-z]+"#]
        let read = [queuePattern].compactMap { $0 } + streams.map { $0.rawValue.replacing(".", with: #"\."#) }
        return BusPermissions(
            configure: "^$", write: "^(\(write.joined(separator: "|")))$", read: "^(\(read.joined(separator: "|")))$")
    }

    /// The stage's work queues, as a regular expression without anchors; `nil` for roles that are not stages. A stage
    /// consumes these queues, and publishes retries and dead letters under their names.
    private var queuePattern: String? {
        switch self {
        case .topology, .deadLetters, .upstream, .eventsAPI: nil
        case .rules: #"rules\.(events|events\.app\.\#(Self.app)|outcomes|erasures|census|channels)"#
        case .tokenRegistry:
            #"token-registry\.(campaigns|(devices|notifications\.\#(Self.lane))(\.app\.\#(Self.app))?)"#
        case .apnsSender: #"apns-sender\.(channels|pushes\.\#(Self.lane)\.\#(Self.app))"#
        case .fcmSender: #"fcm-sender\.pushes\.\#(Self.lane)\.\#(Self.app)"#
        case .webPushSender: #"webpush-sender\.pushes\.\#(Self.lane)\.\#(Self.app)"#
        case .feedback: #"feedback\.(outcomes|erasures)"#
        case .webhookSender: #"webhook-sender\.reports\.\#(Self.app)\.\#(Self.app)"#
        }
    }

    private var streams: [StreamName] {
        switch self {
        case .apnsSender, .fcmSender, .webPushSender: [.senderRevocations]
        case .topology, .rules, .tokenRegistry, .feedback, .deadLetters, .upstream, .eventsAPI, .webhookSender: []
        }
    }

    /// The stage's output other than retries and dead letters: exchanges, and routing keys as regular expressions
    /// without anchors.
    private var outputs: [(exchange: ExchangeName, keys: String)] {
        results.isEmpty ? [] : results + [(.census, rawValue)]
    }

    /// The results of the stage's work.
    private var results: [(exchange: ExchangeName, keys: String)] {
        switch self {
        case .topology, .deadLetters, .upstream, .eventsAPI, .webhookSender: []
        case .rules:
            [
                (.notifications, #"(\#(Self.lane)|event\.(reported|receipt)|revoked)\.\#(Self.app)"#),
                // Copies of events for apps that borrow them.
                (.events, #"\#(Self.app)\..+"#),
                // Campaigns of revoked events.
                (.devices, #"command\.\#(DeviceCommand.Command.Verb.cancel.rawValue)\.\#(Self.app)"#),
                (.channels, #"request\.\#(Self.app)"#),
            ]
        case .tokenRegistry:
            [
                // Users of segments, for rules.
                (.events, #"\#(Self.app)\.\#(SegmentPage.eventType.replacing(".", with: #"\."#))"#),
                (.pushes, #"\#(Self.words(Provider.allCases))\.\#(Self.lane)\.\#(Self.app)"#),
                (.outcomes, #"registry\.(skipped|expired)"#),
                (
                    .devices,
                    #"(campaign\.cursor|event\.\#(Self.words(DeviceEvent.Change.allCases))|report\.dead\.\#(Self.app))"#
                ),
            ]
        case .apnsSender: [(.outcomes, Self.outcomes(of: .apns)), (.channels, #"answer\.\#(Self.app)"#)]
        case .fcmSender: [(.outcomes, Self.outcomes(of: .fcm))]
        case .webPushSender: [(.outcomes, Self.outcomes(of: .webpush))]
        case .feedback:
            // The app is optional while a feedback service of an earlier release may be running.
            [
                (
                    .devices,
                    #"command\.\#(Self.words([DeviceCommand.Command.Verb.deactivate, .suspect, .correct]))(\.\#(Self.app))?"#
                )
            ]
        }
    }

    private static let lane = words(Lane.allCases)
    /// Any app, as a regular expression without anchors.
    static let app = "[a-z0-9-]+"

    private static func outcomes(of origin: Outcomes.Origin) -> String {
        #"\#(origin.rawValue)\.(\#(words(Outcome.Answer.Disposition.allCases))|accepted\.elsewhere)"#
    }

    private static func words(_ cases: [some RawRepresentable<String>]) -> String {
        "(\(cases.map(\.rawValue).joined(separator: "|")))"
    }
}
