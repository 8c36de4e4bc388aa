/// The exchanges, queues and bindings of the bus for the configured apps. `pushctl topology apply` declares them;
/// services verify the part that they use.
package struct Topology: Hashable, Sendable {
    package var exchanges: [Exchange]
    package var queues: [Queue]
    package var bindings: [Binding]
    package var exchangeBindings: [ExchangeBinding]
    /// Bindings of earlier releases, removed after everything else is declared.
    package var retired: [Binding]

    package init(
        exchanges: [Exchange], queues: [Queue], bindings: [Binding], exchangeBindings: [ExchangeBinding] = [],
        retired: [Binding] = []
    ) {
        self.exchanges = exchanges
        self.queues = queues
        self.bindings = bindings
        self.exchangeBindings = exchangeBindings
        self.retired = retired
    }

    package struct Exchange: Hashable, Sendable {
        package enum Kind: String, Sendable { case topic, direct, fanout }
        package var name: String
        package var kind: Kind
        /// The exchange's kind in an earlier release. RabbitMQ cannot change it, so `topology apply` deletes such an
        /// exchange and declares it again. Exchanges hold no messages.
        package var formerKind: Kind?
        /// The alternate exchange, which receives messages that no binding matches.
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
        /// `x-*` arguments, limited to those common to RabbitMQ 3.10 to 4.3. All queues are durable.
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

    /// An exchange-to-exchange binding.
    package struct ExchangeBinding: Hashable, Sendable {
        package var source: String
        package var destination: String
        package var routingKey: String
    }
}

extension Topology {
    /// The broker's delivery limit before dead-lettering. Deployments and crashes cause far fewer redeliveries, so
    /// only a message that crashes its consumer reaches it.
    package static let deliveryLimit: Int64 = 20

    /// Creates the topology for `apps`.
    ///
    /// - Parameter reports: the apps among them with queues for their reports.
    package init(apps: [AppID], reports: ReportConsumers = .none) {
        let work = WorkQueue.all(apps: apps, reports: reports)
        let inputs: [Exchange] = InputExchange.allCases.flatMap { input -> [Exchange] in
            [.init(.otherApps(input), .topic), .init(.byApp(input), .topic, alternate: .otherApps(input))]
        }
        let retries: [Exchange] = RetryLevel.allCases.map { .init(.retry($0), .topic, formerKind: .fanout) }
        exchanges = [
            .init(.events, .topic), .init(.notifications, .topic), .init(.pushes, .topic), .init(.outcomes, .topic),
            .init(.devices, .topic), .init(.census, .topic), .init(.channels, .topic), .init(.return, .direct),
            .init(.dead, .topic, formerKind: .direct), .init(.marks, .direct),
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
        exchangeBindings = InputExchange.allCases.flatMap { input in
            input.patterns.map {
                ExchangeBinding(source: input.rawValue, destination: ExchangeName.byApp(input).name, routingKey: $0)
            }
        }
        retired = [Binding(.events, "#", .rulesEvents), Binding(.devices, "command.#", .registryDevices)]
        retired += Lane.allCases.map { Binding(.notifications, "\($0.rawValue).#", .registryNotifications($0)) }
        addReports(to: reports, apps: apps)
    }
}

extension Topology.Binding {
    fileprivate init(_ exchange: ExchangeName, _ routingKey: String, _ queue: WorkQueue) {
        self.init(exchange: exchange.name, queue: queue.name, routingKey: routingKey)
    }
}

extension InputExchange {
    /// The routing keys that stages consume from this exchange.
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
        _ exchange: ExchangeName, _ kind: Kind, formerKind: Kind? = nil, alternate: ExchangeName? = nil
    ) {
        self.init(name: exchange.name, kind: kind, formerKind: formerKind, alternate: alternate?.name)
    }
}

extension Topology.Queue {
    /// At-least-once dead-lettering requires `reject-publish`; otherwise RabbitMQ silently uses at-most-once.
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

    /// Without a dead-letter routing key, the message keeps its own: the name of its work queue.
    fileprivate init(retry level: RetryLevel) {
        name = level.queueName
        arguments = Self.deadLettering(to: .return).merging([
            "x-message-ttl": .number(level.delay.wholeMilliseconds)
        ]) { $1 }
    }

    /// Limited by age, and by size to over a million events. RabbitMQ deletes whole segments.
    fileprivate init(stream: StreamName) {
        name = stream.rawValue
        arguments = [
            "x-queue-type": .text("stream"),
            "x-max-age": .text("\(stream.retention.components.seconds)s"),
            "x-max-length-bytes": .number(1_000_000_000),
            "x-stream-max-segment-size-bytes": .number(50_000_000),
        ]
    }
}

extension StreamName {
    /// Returns whether a message belongs in the stream. A message that a publisher routed here by a `CC` header has
    /// another routing key; RabbitMQ before 4.0 does not check that header.
    package func accepts(exchange: String, routingKey: String) -> Bool {
        sources.contains { source in
            // A stream's pattern is one routing key, or a prefix followed by `.#`.
            source.exchange.name == exchange
                && (source.pattern == routingKey
                    || source.pattern.hasSuffix(".#") && routingKey.hasPrefix(source.pattern.dropLast()))
        }
    }

    fileprivate var sources: [(exchange: ExchangeName, pattern: String)] {
        switch self {
        case .senderRevocations:
            [DeviceEvent.Change.replaced, .signedOut, .erased].map { (.devices, DeviceEvent.routingKey($0)) }
                + [(.notifications, "revoked.#")]
        }
    }
}

extension WorkQueue {
    /// The bindings of this queue, except those for returned retries.
    fileprivate var sources: [(exchange: ExchangeName, pattern: String)] {
        switch self {
        case .rulesEvents: [(.otherApps(.events), "#")]
        case .rulesAppEvents(let app): [(.byApp(.events), "\(app.rawValue).#")]
        case .rulesOutcomes: [(.outcomes, "#")]
        case .rulesErasures: [(.devices, DeviceEvent.routingKey(.userErased))]
        case .rulesCensus: [(.census, "#")]
        case .rulesChannels: [(.channels, "answer.*")]
        case .apnsSenderChannels: [(.channels, "request.*")]
        case .feedbackErasures: [(.devices, DeviceEvent.routingKey(.erased))]
        case .registryNotifications(let lane): [(.otherApps(.notifications), "\(lane.rawValue).#")]
        case .registryAppNotifications(let lane, let app):
            [(.byApp(.notifications), RoutingKey.notification(lane, app))]
        case .registryDevices: [(.otherApps(.devices), "command.#")]
        case .registryAppDevices(let app): [(.byApp(.devices), "command.*.\(app.rawValue)")]
        case .registryCampaigns: [(.devices, RoutingKey.campaignCursor)]
        case .senderPushes(let provider, let lane, let app): [(.pushes, RoutingKey.push(provider, lane, app))]
        // Bound by `Topology.addReports(to:apps:)`.
        case .webhookReports: []
        case .feedbackOutcomes:
            Outcome.Answer.Disposition.allCases.map { disposition in
                (.outcomes, disposition == .accepted ? "*.accepted.elsewhere" : "*.\(disposition.rawValue)")
            }
        }
    }
}
