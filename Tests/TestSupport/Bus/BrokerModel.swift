internal import AMQP
internal import PushProtocol

/// What RabbitMQ does with messages, as far as a stage can tell: routing, lending, settling, redelivery counts, delivery
/// limits and dead-lettering. Pure; `InMemoryBus` is its shell.
struct BrokerModel {
    struct Stored {
        var message: AMQPMessage
        var isRedelivered = false
        var returns: Int64 = 0
    }

    struct Consumer {
        let id: Int
        let prefetch: Int
        var lent = 0
    }

    struct Queue {
        var ready: [Stored] = []
        var consumers: [Consumer] = []
        let arguments: [String: Topology.Argument]
    }

    private struct Loan {
        let queue: String
        let consumer: Int
        let stored: Stored
    }

    private var exchanges: [String: Topology.Exchange.Kind]
    private(set) var queues: [String: Queue]
    private var bindings: Set<Topology.Binding>
    private var loans: [AMQPDeliveryTag: Loan] = [:]
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
        for target in targets { queues[target]?.ready.append(Stored(message: message)) }
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

    /// Lends what can be lent: in order, each to the consumer that has the least.
    mutating func lend() -> [(consumer: Int, deliveries: [AMQPDelivery])] {
        var bursts: [Int: [AMQPDelivery]] = [:]
        for name in queues.keys.sorted() {
            while let stored = queues[name]?.ready.first,
                let index = queues[name]?.consumers.indices.filter({ queues[name]!.consumers[$0].hasRoom })
                    .min(by: { queues[name]!.consumers[$0].lent < queues[name]!.consumers[$1].lent })
            {
                queues[name]!.ready.removeFirst()
                queues[name]!.consumers[index].lent += 1
                let consumer = queues[name]!.consumers[index].id
                let delivery = lend(stored, of: name, to: consumer)
                bursts[consumer, default: []].append(delivery)
            }
        }
        return bursts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private mutating func lend(_ stored: Stored, of queue: String, to consumer: Int) -> AMQPDelivery {
        let tag = AMQPDeliveryTag(generation: generation, value: nextTag)
        nextTag += 1
        loans[tag] = Loan(queue: queue, consumer: consumer, stored: stored)
        var properties = stored.message.properties
        if stored.isRedelivered { properties.headers["x-delivery-count"] = .int(stored.returns) }
        return AMQPDelivery(
            queue: queue, tag: tag, redelivered: stored.isRedelivered, exchange: stored.message.exchange,
            routingKey: stored.message.routingKey, properties: properties, body: stored.message.body)
    }

    mutating func acknowledge(_ tags: [AMQPDeliveryTag]) {
        for tag in tags { _ = take(tag) }
    }

    /// Gives back near the head, in the order lent; past the delivery limit a message is dead-lettered.
    mutating func requeue(_ tags: [AMQPDeliveryTag]) {
        for tag in tags.sorted(by: { $0.value > $1.value }) {
            guard let loan = take(tag) else { continue }
            var stored = loan.stored
            stored.isRedelivered = true
            stored.returns += 1
            if case .number(let limit) = queues[loan.queue]?.arguments["x-delivery-limit"], stored.returns > limit {
                deadLetter(stored, from: loan.queue, reason: "delivery_limit")
            } else {
                queues[loan.queue]?.ready.insert(stored, at: 0)
            }
        }
    }

    /// Moves deliveries to the dead-letter exchange of their queue.
    mutating func reject(_ tags: [AMQPDeliveryTag]) {
        for tag in tags {
            guard let loan = take(tag) else { continue }
            deadLetter(loan.stored, from: loan.queue, reason: "rejected")
        }
    }

    /// The connection ends and is made again: everything lent goes back, and its tags mean nothing any more.
    mutating func loseConnection() {
        requeue(Array(loans.keys))
        generation += 1
    }

    func unsettled(in queue: String) -> Int { loans.values.count { $0.queue == queue } }

    private mutating func take(_ tag: AMQPDeliveryTag) -> Loan? {
        guard let loan = loans.removeValue(forKey: tag) else { return nil }
        if let index = queues[loan.queue]?.consumers.firstIndex(where: { $0.id == loan.consumer }) {
            queues[loan.queue]!.consumers[index].lent -= 1
        }
        return loan
    }
}

extension BrokerModel {
    /// Lets the time to live of everything in `queue` pass.
    mutating func expire(_ queue: String) {
        let expired = queues[queue]?.ready ?? []
        queues[queue]?.ready = []
        for stored in expired { deadLetter(stored, from: queue, reason: "expired") }
    }

    mutating func takeFirst(from queue: String) -> AMQPMessage? {
        guard queues[queue]?.ready.isEmpty == false else { return nil }
        return queues[queue]?.ready.removeFirst().message
    }

    /// Publishes to the queue's dead-letter exchange as RabbitMQ does, `x-death` and the silent drop of a cycle without
    /// a rejection included.
    private mutating func deadLetter(_ stored: Stored, from queue: String, reason: String) {
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
            queues[target]?.ready.append(Stored(message: message))
        }
    }
}

extension BrokerModel.Consumer {
    fileprivate var hasRoom: Bool { lent < prefetch }
}

/// AMQP topic patterns: `*` is one word, `#` any number of words.
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
