/// Every exchange, queue and binding of the bus, as data. One command applies it (`pushctl topology apply`); services
/// only verify what concerns them. It follows from the configured apps.
package struct Topology: Hashable, Sendable {
    package var exchanges: [Exchange]
    package var queues: [Queue]
    package var bindings: [Binding]
    package var links: [Link]
    /// Bindings of earlier releases, which are removed once everything else is in place.
    package var retired: [Binding]

    package init(
        exchanges: [Exchange], queues: [Queue], bindings: [Binding], links: [Link] = [], retired: [Binding] = []
    ) {
        self.exchanges = exchanges
        self.queues = queues
        self.bindings = bindings
        self.links = links
        self.retired = retired
    }

    package struct Exchange: Hashable, Sendable {
        package enum Kind: String, Sendable { case topic, direct, fanout }
        package var name: String
        package var kind: Kind
        /// The kind that an earlier release declared. An exchange keeps its kind for life, so `topology apply` deletes one
        /// of this kind and declares it anew. Exchanges hold no messages.
        package var formerKind: Kind?
        /// The exchange that takes the messages which no binding of this one takes.
        package var alternate: String?

        package init(name: String, kind: Kind, formerKind: Kind? = nil, alternate: String? = nil) {
            self.name = name
            self.kind = kind
            self.formerKind = formerKind
            self.alternate = alternate
        }
    }

    package struct Queue: Hashable, Sendable {
        package var name: String
        /// `x-*` arguments; every queue is durable. Only the subset that RabbitMQ 3.10 to 4.3 agree on.
        package var arguments: [String: Argument]

        package init(name: String, arguments: [String: Argument]) {
            self.name = name
            self.arguments = arguments
        }
    }

    package enum Argument: Hashable, Sendable {
        case text(String)
        case number(Int64)
    }

    package struct Binding: Hashable, Sendable {
        package var exchange: String
        package var queue: String
        package var routingKey: String

        package init(exchange: String, queue: String, routingKey: String) {
            self.exchange = exchange
            self.queue = queue
            self.routingKey = routingKey
        }
    }

    /// A binding from one exchange to another.
    package struct Link: Hashable, Sendable {
        package var source: String
        package var destination: String
        package var routingKey: String

        package init(source: String, destination: String, routingKey: String) {
            self.source = source
            self.destination = destination
            self.routingKey = routingKey
        }
    }
}

extension Topology {
    /// How often the broker itself returns a message before it dead-letters it: far above what deploys and crashes
    /// cost, so that only a message that kills its consumer gets there.
    package static let deliveryLimit: Int64 = 20

    /// The bus for `apps`.
    package init(apps: [AppID]) {
        let work = WorkQueue.all(apps: apps)
        let inputs: [Exchange] = AppInput.allCases.flatMap { input -> [Exchange] in
            [.init(.otherApps(input), .topic), .init(.byApp(input), .topic, otherwise: .otherApps(input))]
        }
        let retries: [Exchange] = RetryLevel.allCases.map { .init(.retry($0), .topic, formerly: .fanout) }
        exchanges = [
            .init(.events, .topic), .init(.notifications, .topic), .init(.pushes, .topic), .init(.outcomes, .topic),
            .init(.devices, .topic), .init(.return, .direct), .init(.dead, .topic, formerly: .direct),
            .init(.marks, .direct),
        ]
        exchanges += inputs + retries
        queues =
            work.flatMap { [Queue(work: $0), Queue(dead: $0)] } + RetryLevel.allCases.map { Queue(retry: $0) }
            + StreamName.allCases.map { Queue(stream: $0) }
        bindings =
            work.flatMap { queue in
                queue.sources.map { Binding(exchange: $0.exchange.name, queue: queue.name, routingKey: $0.pattern) }
                    + [
                        Binding(exchange: ExchangeName.return.name, queue: queue.name, routingKey: queue.name),
                        Binding(exchange: ExchangeName.dead.name, queue: queue.deadName, routingKey: queue.name),
                    ]
            }
            + RetryLevel.allCases.map {
                Binding(exchange: ExchangeName.retry($0).name, queue: $0.queueName, routingKey: "#")
            }
            + StreamName.allCases.flatMap { stream in
                stream.sources.map {
                    Binding(exchange: $0.exchange.name, queue: stream.rawValue, routingKey: $0.pattern)
                } + [Binding(exchange: ExchangeName.marks.name, queue: stream.rawValue, routingKey: stream.rawValue)]
            }
        links = AppInput.allCases.flatMap { input in
            input.patterns.map {
                Link(source: input.rawValue, destination: ExchangeName.byApp(input).name, routingKey: $0)
            }
        }
        retired = [Binding(.events, "#", .rulesEvents), Binding(.devices, "command.#", .registryDevices)]
        retired += Lane.allCases.map { Binding(.notifications, "\($0.rawValue).#", .registryNotifications($0)) }
    }
}

extension Topology.Binding {
    fileprivate init(_ exchange: ExchangeName, _ routingKey: String, _ queue: WorkQueue) {
        self.init(exchange: exchange.name, queue: queue.name, routingKey: routingKey)
    }
}

extension AppInput {
    /// The routing keys of the messages that stages take from this exchange.
    fileprivate var patterns: [String] {
        switch self {
        case .events: ["#"]
        case .notifications: Lane.allCases.map { "\($0.rawValue).#" }
        case .devices: ["command.#"]
        }
    }
}

extension Topology.Exchange {
    fileprivate init(
        _ exchange: ExchangeName, _ kind: Kind, formerly formerKind: Kind? = nil, otherwise other: ExchangeName? = nil
    ) {
        self.init(name: exchange.name, kind: kind, formerKind: formerKind, alternate: other?.name)
    }
}

extension Topology.Queue {
    /// At-least-once dead-lettering needs `reject-publish`, or the broker falls back to at-most-once without a word.
    private static func deadLettering(to exchange: ExchangeName) -> [String: Topology.Argument] {
        [
            "x-queue-type": .text("quorum"),
            "x-overflow": .text("reject-publish"),
            "x-dead-letter-exchange": .text(exchange.name),
            "x-dead-letter-strategy": .text("at-least-once"),
        ]
    }

    fileprivate init(work queue: WorkQueue) {
        name = queue.name
        arguments = Self.deadLettering(to: .dead).merging([
            "x-dead-letter-routing-key": .text(queue.name),
            "x-delivery-limit": .number(Topology.deliveryLimit),
        ]) { $1 }
    }

    fileprivate init(dead queue: WorkQueue) {
        name = queue.deadName
        arguments = ["x-queue-type": .text("quorum")]
    }

    /// No dead-letter routing key: the message keeps its own, which is the name of the queue it came from.
    fileprivate init(retry level: RetryLevel) {
        name = level.queueName
        arguments = Self.deadLettering(to: .return).merging([
            "x-message-ttl": .number(level.delay.wholeMilliseconds)
        ]) { $1 }
    }

    /// Kept by age and, whatever happens, by size: a million and more events. The broker forgets a segment at a time.
    fileprivate init(stream: StreamName) {
        name = stream.rawValue
        arguments = [
            "x-queue-type": .text("stream"),
            "x-max-age": .text("\(stream.memory.components.seconds)s"),
            "x-max-length-bytes": .number(1_000_000_000),
            "x-stream-max-segment-size-bytes": .number(50_000_000),
        ]
    }
}

extension StreamName {
    /// Whether a message of this exchange and routing key belongs in the stream. One that a publisher put there by a `CC`
    /// header has another routing key: the broker does not check that header before version 4.
    package func takes(exchange: String, routingKey: String) -> Bool {
        sources.contains { source in
            // The patterns of streams are one routing key, or all keys below a word.
            source.exchange.name == exchange
                && (source.pattern == routingKey
                    || source.pattern.hasSuffix(".#") && routingKey.hasPrefix(source.pattern.dropLast()))
        }
    }

    fileprivate var sources: [(exchange: ExchangeName, pattern: String)] {
        switch self {
        case .senderRevocations:
            [DeviceEvent.Past.replaced, .signedOut, .erased].map { (.devices, DeviceEvent.routingKey($0)) }
                + [(.notifications, "revoked.#")]
        }
    }
}

extension WorkQueue {
    /// What is bound to this queue besides the way back from a retry.
    fileprivate var sources: [(exchange: ExchangeName, pattern: String)] {
        switch self {
        case .rulesEvents: [(.otherApps(.events), "#")]
        case .rulesAppEvents(let app): [(.byApp(.events), "\(app.rawValue).#")]
        case .rulesOutcomes: [(.outcomes, "#")]
        case .rulesErasures: [(.devices, DeviceEvent.routingKey(.userErased))]
        case .feedbackErasures: [(.devices, DeviceEvent.routingKey(.erased))]
        case .registryNotifications(let lane): [(.otherApps(.notifications), "\(lane.rawValue).#")]
        case .registryAppNotifications(let lane, let app):
            [(.byApp(.notifications), RoutingKey.notification(lane, app))]
        case .registryDevices: [(.otherApps(.devices), "command.#")]
        case .registryAppDevices(let app): [(.byApp(.devices), "command.*.\(app.rawValue)")]
        case .registryCampaigns: [(.devices, RoutingKey.campaignCursor)]
        case .senderPushes(let provider, let lane, let app): [(.pushes, RoutingKey.push(provider, lane, app))]
        case .feedbackOutcomes:
            Outcome.Answer.Disposition.allCases.map { disposition in
                (.outcomes, disposition == .accepted ? "*.accepted.elsewhere" : "*.\(disposition.rawValue)")
            }
        }
    }
}
