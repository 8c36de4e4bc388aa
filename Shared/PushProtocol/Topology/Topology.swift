/// Every exchange, queue and binding of the bus, as data. One command applies it (`pushctl topology apply`); services
/// only verify what concerns them. It follows from the configured apps.
package struct Topology: Hashable, Sendable {
    package var exchanges: [Exchange]
    package var queues: [Queue]
    package var bindings: [Binding]

    package init(exchanges: [Exchange], queues: [Queue], bindings: [Binding]) {
        self.exchanges = exchanges
        self.queues = queues
        self.bindings = bindings
    }

    package struct Exchange: Hashable, Sendable {
        package enum Kind: String, Sendable { case topic, direct, fanout }
        package var name: String
        package var kind: Kind

        package init(name: String, kind: Kind) {
            self.name = name
            self.kind = kind
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
}

extension Topology {
    /// How often the broker itself returns a message before it dead-letters it: far above what deploys and crashes
    /// cost, so that only a message that kills its consumer gets there.
    package static let deliveryLimit: Int64 = 20

    /// The bus for `apps`.
    package init(apps: [AppID]) {
        let work = WorkQueue.all(apps: apps)
        exchanges =
            [.init(.events, .topic), .init(.notifications, .topic), .init(.pushes, .topic)]
            + [.init(.outcomes, .topic), .init(.devices, .topic)]
            + RetryLevel.allCases.map { .init(.retry($0), .fanout) }
            + [.init(.return, .direct), .init(.dead, .direct), .init(.marks, .direct)]
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
                Binding(exchange: ExchangeName.retry($0).name, queue: $0.queueName, routingKey: "")
            }
            + StreamName.allCases.flatMap { stream in
                stream.sources.map {
                    Binding(exchange: $0.exchange.name, queue: stream.rawValue, routingKey: $0.pattern)
                } + [Binding(exchange: ExchangeName.marks.name, queue: stream.rawValue, routingKey: stream.rawValue)]
            }
    }
}

extension Topology.Exchange {
    fileprivate init(_ exchange: ExchangeName, _ kind: Kind) {
        name = exchange.name
        self.kind = kind
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
        case .rulesEvents: [(.events, "#")]
        case .rulesOutcomes: [(.outcomes, "#")]
        case .rulesErasures: [(.devices, DeviceEvent.routingKey(.userErased))]
        case .feedbackErasures: [(.devices, DeviceEvent.routingKey(.erased))]
        case .registryNotifications(let lane): [(.notifications, "\(lane.rawValue).#")]
        case .registryDevices: [(.devices, "command.#")]
        case .registryCampaigns: [(.devices, RoutingKey.campaignCursor)]
        case .senderPushes(let provider, let lane, let app): [(.pushes, RoutingKey.push(provider, lane, app))]
        case .feedbackOutcomes:
            Outcome.Answer.Disposition.allCases.map { disposition in
                (.outcomes, disposition == .accepted ? "*.accepted.elsewhere" : "*.\(disposition.rawValue)")
            }
        }
    }
}
