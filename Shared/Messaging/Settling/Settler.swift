internal import AMQP
internal import Logging
internal import PushProtocol

/// Carries settlements out: publishes, waits for the broker's word, tries again what it did not take, acknowledges.
struct Settler: Sendable {
    let bus: any MessageBus
    let backoff: Backoff
    /// Who publishes.
    let service: String
    let metrics: StageMetrics
    let logger: Logger

    /// Settles each message as soon as everything it wants published was confirmed.
    ///
    /// What the broker does not take is tried until it does, or the settlement steps aside. Only a cancellation or a
    /// closed bus ends that: then what is left goes back to its queue.
    ///
    /// - Returns: whether every message was settled.
    func carryOut(_ settlements: [Settlement]) async -> Bool { await carryOut(finish(settlements), failures: 0) }

    /// The same for messages of which nothing is left but to be acknowledged, once the broker has what they led to: nearly
    /// every batch is of such. Only where it does not take everything at once, `settlements` are made of them.
    func finish(_ messages: [any Readable], _ verdicts: [Verdict], settlements: () -> [Settlement]) async -> Bool {
        var pile = Pile(service: service, room: messages.count)
        var idle: [AMQPDeliveryTag] = []
        var waiting: [AMQPDeliveryTag] = []
        waiting.reserveCapacity(messages.count)
        for place in messages.indices {
            let tag = messages[place].tag
            if verdicts[place].outbound.isEmpty { idle.append(tag) } else { waiting.append(tag) }
            for message in verdicts[place].outbound { pile.add(message) }
        }
        guard let queue = messages.first?.inbound.queue else { return true }
        acknowledge(idle, of: queue)
        guard !waiting.isEmpty else { return true }
        do {
            let answers = try await bus.publish(pile.messages)
            report(answers, to: pile.messages)
            if answers.allSatisfy({ $0 == .confirmed }) {
                acknowledge(waiting, of: queue)
                return true
            }
            var open = settlements().filter { $0.wanted > 0 }
            record(answers, at: pile.places, in: &open)
            return await carryOut(finish(open), failures: 1)
        } catch {
            giveBack(waiting, error)
            return false
        }
    }

    private func acknowledge(_ tags: [AMQPDeliveryTag], of queue: WorkQueue) {
        guard !tags.isEmpty else { return }
        bus.acknowledge(tags)
        metrics.done(queue, tags.count)
    }

    private func carryOut(_ settlements: [Settlement], failures: Int) async -> Bool {
        var open = settlements
        var failures = failures
        while !open.isEmpty {
            do {
                if failures > 0 { try await Task.sleep(for: backoff.delay(afterFailures: failures)) }
                let progressed = try await publish(&open)
                open = finish(open)
                failures = progressed ? 0 : failures + 1
            } catch {
                giveBack(open.map(\.tag), error)
                return false
            }
        }
        return true
    }

    private func giveBack(_ tags: [AMQPDeliveryTag], _ error: any Error) {
        logger.notice(
            "Gave messages back that could not be settled",
            metadata: [LogKey.count: "\(tags.count)", LogKey.error: "\(error)"])
        bus.requeue(tags)
    }

    /// Publishes the next step of each, and what several have in common once. Returns whether every message was taken.
    private func publish(_ open: inout [Settlement]) async throws(AMQPError) -> Bool {
        var pile = Pile(service: service, room: open.count)
        for settlement in open {
            switch settlement.next {
            case .publish(let outbound): for message in outbound { pile.add(message) }
            case .move(let copy): pile.add(copy)
            case .acknowledge, .reject: break
            }
        }
        let answers = try await bus.publish(pile.messages)
        report(answers, to: pile.messages)
        guard !answers.allSatisfy({ $0 == .confirmed }) else {
            for index in open.indices { open[index].confirm() }
            return true
        }
        record(answers, at: pile.places, in: &open)
        return false
    }

    /// Tells each of `open` what the broker said to its messages, which are at `places` among the answers.
    private func record(_ answers: [AMQPConfirmation], at places: [Int], in open: inout [Settlement]) {
        var places = places[...]
        for index in open.indices {
            let wanted = open[index].wanted
            open[index].record(places.prefix(wanted).map { answers[$0] })
            places = places.dropFirst(wanted)
        }
    }

    /// Messages that are published together.
    private struct Pile {
        let service: String
        private(set) var messages: [AMQPMessage] = []
        /// Where in `messages` each one is that was added, in the order they were.
        private(set) var places: [Int] = []
        private var last: (outbound: Outbound, place: Int)?
        private var known: [ObjectIdentifier: Int] = [:]

        /// - Parameter room: for how many additions to set some aside.
        init(service: String, room: Int) {
            self.service = service
            places.reserveCapacity(room)
        }

        /// Adds a message that several may have in common, mostly with the one before.
        mutating func add(_ outbound: Outbound) {
            if let last, last.outbound === outbound { return places.append(last.place) }
            let place = known[ObjectIdentifier(outbound)] ?? messages.count
            if place == messages.count {
                known[ObjectIdentifier(outbound)] = place
                messages.append(outbound.message(from: service))
            }
            places.append(place)
            last = (outbound, place)
        }

        mutating func add(_ copy: AMQPMessage) {
            places.append(messages.count)
            messages.append(copy)
        }
    }

    /// Acknowledges what is done, and returns the rest.
    private func finish(_ settlements: [Settlement]) -> [Settlement] {
        var open: [Settlement] = []
        var done: [Settlement] = []
        var rejected: [Settlement] = []
        for settlement in settlements {
            if settlement.isRejected {
                rejected.append(settlement)
            } else if settlement.wanted > 0 {
                open.append(settlement)
            } else {
                done.append(settlement)
            }
        }
        if !done.isEmpty { bus.acknowledge(done.map(\.tag)) }
        if !rejected.isEmpty { bus.reject(rejected.map(\.tag)) }
        metrics.settled(done)
        metrics.settled(rejected)
        for settlement in done + rejected where !settlement.conclusion.isDone { report(settlement) }
        return open
    }

    private func report(_ settlement: Settlement) {
        guard let reason = settlement.conclusion.reason else { return }
        let level: Logger.Level =
            switch settlement.conclusion {
            case .deadLetter: .warning
            case .postpone where reason.code == ReasonCode.outboundUnroutable: .error
            case .retry, .postpone, .done, .discard: .debug
            }
        logger.log(
            level: level, "Settled: \(settlement.conclusion.label)",
            metadata: [
                LogKey.queue: "\(settlement.inbound.queue.name)", LogKey.reason: "\(reason.code)",
                LogKey.detail: "\(reason.detail)", LogKey.messageID: "\(settlement.inbound.messageID ?? "-")",
                LogKey.attempt: "\(settlement.inbound.attempt)",
            ])
    }

    private func report(_ answers: [AMQPConfirmation], to messages: [AMQPMessage]) {
        metrics.published(messages, answers)
        for (message, answer) in zip(messages, answers) {
            switch answer {
            case .confirmed: break
            case .nacked:
                logger.warning(
                    "The broker could not take a message; it is published again", metadata: Self.place(of: message))
            case .returned(let code, let text):
                let next =
                    answer.isPermanentRefusal
                    ? "The broker can never take a message; its cause is dead-lettered"
                    : "A message reached no queue and is published again: apply the topology, or check its permissions"
                logger.error(
                    "\(next)",
                    metadata: Self.place(of: message).merging([LogKey.reply: "\(code) \(text)"]) { $1 })
            }
        }
    }

    private static func place(of message: AMQPMessage) -> Logger.Metadata {
        [LogKey.exchange: "\(message.exchange)", LogKey.routingKey: "\(message.routingKey)"]
    }
}
