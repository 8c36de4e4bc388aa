internal import AMQP
internal import PushProtocol

/// A model of RabbitMQ as far as a stage observes it: routing, delivery, settlement, redelivery counts, delivery limits
/// and dead-lettering. Pure; used by ``InMemoryBus``.
struct BrokerModel {
    struct StoredMessage {
        var message: AMQPMessage
        var isRedelivered = false
        var returns: Int64 = 0
    }

    struct Consumer {
        let id: Int
        let prefetch: Int
        var unackedCount = 0
    }

    struct Queue {
        var ready: [StoredMessage] = []
        var consumers: [Consumer] = []
        let arguments: [String: Topology.Argument]
    }

    private struct UnackedMessage {
        let queue: String
        let consumer: Int
        let stored: StoredMessage
    }

    private var exchanges: [String: Topology.Exchange.Kind]
    private(set) var queues: [String: Queue]
    private var bindings: Set<Topology.Binding>
    private var unacked: [AMQPDeliveryTag: UnackedMessage] = [:]
    private var generation: UInt64 = 1
    private var nextTag: UInt64 = 1
    private var nextConsumer = 1

    init(_ topology: Topology) {
        exchanges = Dictionary(topology.exchanges.map { ($0.name, $0.kind) }) { $1 }
        queues = Dictionary(topology.queues.map { ($0.name, Queue(arguments: $0.arguments)) }) { $1 }
        bindings = Set(topology.bindings)
    }

    mutating func publish(_ message: AMQPMessage) -> AMQPConfirmation {
        guard message.exchange.isEmpty || exchanges[message.exchange] != nil else {
            return .returned(code: 404, text: "NOT_FOUND")
        }
        let targets = route(message.exchange, message.routingKey)
        guard !targets.isEmpty else { return .returned(code: 312, text: "NO_ROUTE") }
        for target in targets { queues[target]?.ready.append(StoredMessage(message: message)) }
        return .confirmed
    }

    func route(_ exchange: String, _ routingKey: String) -> [String] {
        if exchange.isEmpty { return queues[routingKey] == nil ? [] : [routingKey] }
        guard let kind = exchanges[exchange] else { return [] }
        let matching = bindings.filter { binding in
            guard binding.exchange == exchange else { return false }
            return switch kind {
            case .fanout: true
            case .direct: binding.routingKey == routingKey
            case .topic: TopicPattern.matches(binding.routingKey, routingKey)
            }
        }
        return Set(matching.map(\.queue)).sorted()
    }

    mutating func bind(_ binding: Topology.Binding) { bindings.insert(binding) }
    mutating func unbind(_ binding: Topology.Binding) { bindings.remove(binding) }
}

extension BrokerModel {
    mutating func addConsumer(to queue: String, prefetch: UInt16) -> Int {
        defer { nextConsumer += 1 }
        queues[queue]?.consumers.append(Consumer(id: nextConsumer, prefetch: Int(prefetch)))
        return nextConsumer
    }

    mutating func removeConsumer(_ id: Int) {
        for name in queues.keys { queues[name]?.consumers.removeAll { $0.id == id } }
    }

    /// Delivers ready messages in order, each to the consumer with the fewest unacknowledged ones.
    mutating func deliver() -> [(consumer: Int, deliveries: [AMQPDelivery])] {
        var bursts: [Int: [AMQPDelivery]] = [:]
        for name in queues.keys.sorted() {
            while let stored = queues[name]?.ready.first,
                let index = queues[name]?.consumers.indices.filter({ queues[name]!.consumers[$0].hasRoom })
                    .min(by: { queues[name]!.consumers[$0].unackedCount < queues[name]!.consumers[$1].unackedCount })
            {
                queues[name]!.ready.removeFirst()
                queues[name]!.consumers[index].unackedCount += 1
                let consumer = queues[name]!.consumers[index].id
                let delivery = deliver(stored, of: name, to: consumer)
                bursts[consumer, default: []].append(delivery)
            }
        }
        return bursts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private mutating func deliver(_ stored: StoredMessage, of queue: String, to consumer: Int) -> AMQPDelivery {
        let tag = AMQPDeliveryTag(generation: generation, value: nextTag)
        nextTag += 1
        unacked[tag] = UnackedMessage(queue: queue, consumer: consumer, stored: stored)
        var properties = stored.message.properties
        if stored.isRedelivered { properties.headers["x-delivery-count"] = .int(stored.returns) }
        return AMQPDelivery(
            queue: queue, tag: tag, redelivered: stored.isRedelivered, exchange: stored.message.exchange,
            routingKey: stored.message.routingKey, properties: properties, body: stored.message.body)
    }

    mutating func acknowledge(_ tags: [AMQPDeliveryTag]) {
        for tag in tags { _ = take(tag) }
    }

    /// Requeues near the head, in the order of delivery. Above the delivery limit a message is dead-lettered.
    mutating func requeue(_ tags: [AMQPDeliveryTag]) {
        for tag in tags.sorted(by: { $0.value > $1.value }) {
            guard let message = take(tag) else { continue }
            var stored = message.stored
            stored.isRedelivered = true
            stored.returns += 1
            if case .number(let limit) = queues[message.queue]?.arguments["x-delivery-limit"], stored.returns > limit {
                deadLetter(stored, from: message.queue, reason: "delivery_limit")
            } else {
                queues[message.queue]?.ready.insert(stored, at: 0)
            }
        }
    }

    /// Dead-letters deliveries.
    mutating func reject(_ tags: [AMQPDeliveryTag]) {
        for tag in tags {
            guard let message = take(tag) else { continue }
            deadLetter(message.stored, from: message.queue, reason: "rejected")
        }
    }

    /// Simulates a reconnect: all unacknowledged messages are requeued, and their tags become invalid.
    mutating func loseConnection() {
        requeue(Array(unacked.keys))
        generation += 1
    }

    func unsettled(in queue: String) -> Int { unacked.values.count { $0.queue == queue } }

    private mutating func take(_ tag: AMQPDeliveryTag) -> UnackedMessage? {
        guard let message = unacked.removeValue(forKey: tag) else { return nil }
        if let index = queues[message.queue]?.consumers.firstIndex(where: { $0.id == message.consumer }) {
            queues[message.queue]!.consumers[index].unackedCount -= 1
        }
        return message
    }
}

extension BrokerModel {
    /// Expires every message in `queue`.
    mutating func expire(_ queue: String) {
        let expired = queues[queue]?.ready ?? []
        queues[queue]?.ready = []
        for stored in expired { deadLetter(stored, from: queue, reason: "expired") }
    }

    mutating func takeFirst(from queue: String) -> AMQPMessage? {
        guard queues[queue]?.ready.isEmpty == false else { return nil }
        return queues[queue]?.ready.removeFirst().message
    }

    /// Publishes to the queue's dead-letter exchange like RabbitMQ, with `x-death`. Drops a message in a cycle without
    /// a rejection.
    private mutating func deadLetter(_ stored: StoredMessage, from queue: String, reason: String) {
        guard case .text(let exchange) = queues[queue]?.arguments["x-dead-letter-exchange"] else { return }
        var message = stored.message
        message.exchange = exchange
        if case .text(let key) = queues[queue]?.arguments["x-dead-letter-routing-key"] { message.routingKey = key }
        var deaths: [AMQPValue] = []
        if case .array(let before) = message.properties.headers["x-death"] { deaths = before }
        let isCycle = deaths.contains { death in
            guard case .table(let death) = death else { return false }
            return death["queue"] == .text(queue) && death["reason"] != .text("rejected")
        }
        guard !isCycle else { return }
        deaths.insert(.table(["queue": .text(queue), "reason": .text(reason), "count": .int(1)]), at: 0)
        message.properties.headers["x-death"] = .array(deaths)
        message.properties.headers["x-first-death-queue"] = .text(queue)
        message.properties.expiration = nil
        for target in route(message.exchange, message.routingKey) {
            queues[target]?.ready.append(StoredMessage(message: message))
        }
    }
}

extension BrokerModel.Consumer {
    fileprivate var hasRoom: Bool { unackedCount < prefetch }
}

/// AMQP topic patterns: `*` matches one word, `#` any number.
enum TopicPattern {
    static func matches(_ pattern: String, _ routingKey: String) -> Bool {
        matches(
            pattern.split(separator: ".", omittingEmptySubsequences: false)[...],
            routingKey.split(separator: ".", omittingEmptySubsequences: false)[...])
    }

    private static func matches(_ pattern: ArraySlice<Substring>, _ words: ArraySlice<Substring>) -> Bool {
        guard let first = pattern.first else { return words.isEmpty }
        if first == "#" {
            return matches(pattern.dropFirst(), words) || (!words.isEmpty && matches(pattern, words.dropFirst()))
        }
        guard let word = words.first, first == "*" || first == word else { return false }
        return matches(pattern.dropFirst(), words.dropFirst())
    }
}
