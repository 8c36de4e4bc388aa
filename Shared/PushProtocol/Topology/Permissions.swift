/// Who talks to the broker, each with its own credential.
package enum BusRole: String, Sendable, CaseIterable {
    /// The only one that may declare; used by `pushctl topology apply` alone.
    case topology
    case rules
    case tokenRegistry = "token-registry"
    case apnsSender = "apns-sender"
    case fcmSender = "fcm-sender"
    case feedback
    /// An operator's `pushctl dead`: reads dead-letter queues, puts letters back there, and replays them through `return`.
    case deadLetters = "dead-letters"
    /// An upstream service; its topic permission further holds it to its own app's routing keys. It publishes events
    /// only: a device command names its app in its body, where the broker cannot hold a publisher to it.
    case upstream
}

/// RabbitMQ's three regular expressions for one user.
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

/// The routing keys that one user may publish with on one topic exchange, as a regular expression. RabbitMQ checks them on
/// topic exchanges alone (https://www.rabbitmq.com/docs/access-control#topic-authorisation).
///
/// Before version 4 the broker does not check the keys in a message's `CC` and `BCC` headers. Stages therefore believe a
/// message of the retry path only if its own routing key is their queue's name (`Inbound`).
package struct TopicPermission: Hashable, Sendable {
    package var exchange: ExchangeName
    package var write: String

    package init(exchange: ExchangeName, write: String) {
        self.exchange = exchange
        self.write = write
    }
}

extension BusRole {
    /// The least this role needs. No role may write to the default exchange: that would be every queue.
    package var permissions: BusPermissions {
        switch self {
        case .topology: BusPermissions(configure: ".*", write: ".*", read: ".*")
        case .rules, .tokenRegistry, .apnsSender, .fcmSender, .feedback: stagePermissions
        case .deadLetters:
            BusPermissions(configure: "^$", write: "^(dead|return)$", read: Topology.deadLetters.pattern)
        case .upstream: BusPermissions(configure: "^$", write: "^events$", read: "^$")
        }
    }

    /// One entry for each topic exchange that the role may write to; none for a role that may use every key.
    package var topicPermissions: [TopicPermission] {
        guard let queues = queuePattern else { return [] }
        let retries = RetryLevel.allCases.map { ExchangeName.retry($0) }
        return outputs.map { TopicPermission(exchange: $0.exchange, write: "^\($0.keys)$") }
            + (retries + [.dead]).map { TopicPermission(exchange: $0, write: "^\(queues)$") }
    }

    /// An upstream service of `app` publishes that app's events, and no others.
    package static func upstreamTopicPermissions(of app: AppID) -> [TopicPermission] {
        [TopicPermission(exchange: .events, write: #"^\#(app)\."#)]
    }

    private var stagePermissions: BusPermissions {
        let direct = streams.isEmpty ? [] : [ExchangeName.marks.name]
        let write = outputs.map(\.exchange.name) + direct + [ExchangeName.dead.name, #"retry\.[0-9a-z]+"#]
        let read = [queuePattern].compactMap { $0 } + streams.map { $0.rawValue.replacing(".", with: #"\."#) }
        return BusPermissions(
            configure: "^$", write: "^(\(write.joined(separator: "|")))$", read: "^(\(read.joined(separator: "|")))$")
    }

    /// The work queues of the stage, as a regular expression without anchors; `nil` for a role that is no stage. The stage
    /// consumes these queues, and retries and dead-letters under their names.
    private var queuePattern: String? {
        switch self {
        case .topology, .deadLetters, .upstream: nil
        case .rules: #"rules\.(events|events\.app\.\#(Self.app)|outcomes|erasures)"#
        case .tokenRegistry:
            #"token-registry\.(campaigns|(devices|notifications\.\#(Self.lane))(\.app\.\#(Self.app))?)"#
        case .apnsSender: #"apns-sender\.pushes\.\#(Self.lane)\.\#(Self.app)"#
        case .fcmSender: #"fcm-sender\.pushes\.\#(Self.lane)\.\#(Self.app)"#
        case .feedback: #"feedback\.(outcomes|erasures)"#
        }
    }

    private var streams: [StreamName] {
        switch self {
        case .apnsSender, .fcmSender: [.senderRevocations]
        case .topology, .rules, .tokenRegistry, .feedback, .deadLetters, .upstream: []
        }
    }

    /// The messages of a stage besides retries and dead letters: exchanges, and the routing keys as regular expressions
    /// without anchors.
    private var outputs: [(exchange: ExchangeName, keys: String)] {
        switch self {
        case .topology, .deadLetters, .upstream: []
        case .rules: [(.notifications, #"(\#(Self.lane)|event\.reported|revoked)\.\#(Self.app)"#)]
        case .tokenRegistry:
            [
                (.pushes, #"(apns|fcm)\.\#(Self.lane)\.\#(Self.app)"#), (.outcomes, #"registry\.(skipped|expired)"#),
                (.devices, #"(campaign\.cursor|event\.\#(Self.words(DeviceEvent.Past.allCases)))"#),
            ]
        case .apnsSender: [(.outcomes, Self.outcomes(of: .apns))]
        case .fcmSender: [(.outcomes, Self.outcomes(of: .fcm))]
        case .feedback:
            // Without the app, as feedback of an earlier release publishes while it is replaced.
            [
                (
                    .devices,
                    #"command\.\#(Self.words([DeviceCommand.Command.Verb.deactivate, .suspect, .correct]))(\.\#(Self.app))?"#
                )
            ]
        }
    }

    private static let lane = words(Lane.allCases)
    private static let app = "[a-z0-9-]+"

    private static func outcomes(of origin: Outcomes.Origin) -> String {
        #"\#(origin.rawValue)\.(\#(words(Outcome.Answer.Disposition.allCases))|accepted\.elsewhere)"#
    }

    private static func words(_ cases: [some RawRepresentable<String>]) -> String {
        "(\(cases.map(\.rawValue).joined(separator: "|")))"
    }
}
