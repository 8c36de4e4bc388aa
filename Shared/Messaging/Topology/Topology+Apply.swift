package import AMQP
package import PushProtocol

extension Topology {
    /// Declares everything on the broker: exchanges, then queues, then bindings. Changes nothing that is there as
    /// described, so applying twice is applying once.
    ///
    /// An exchange of its ``Exchange/formerKind`` is deleted and declared anew, after the queues are there. Publishers
    /// get a 404 or 312 for that moment and publish again. The broker keeps a message that it cannot dead-letter
    /// (at-least-once).
    ///
    /// The bindings of earlier releases go last. In between, a message can reach an old queue and a new one; it is then
    /// handled twice, as a message that is delivered again. No message is without a queue.
    ///
    /// - Throws: `AMQPError`; 406 names the queue or exchange that differs. No queue is ever deleted to make room.
    package func apply(using administrator: AMQPAdministrator) async throws(AMQPError) {
        var outdated: [Exchange] = []
        for exchange in exchanges where try await isOutdated(exchange, using: administrator) {
            outdated.append(exchange)
        }
        for queue in queues {
            try await administrator.declareQueue(
                name: queue.name, arguments: queue.arguments.mapValues(AMQPValue.init))
        }
        for exchange in outdated {
            try await administrator.deleteExchange(exchange.name)
            try await declare(exchange, using: administrator)
            try await bind(bindings.filter { $0.exchange == exchange.name }, using: administrator)
        }
        try await bind(bindings, using: administrator)
        for link in links {
            try await administrator.bind(
                exchange: link.destination, to: link.source, routingKey: link.routingKey)
        }
        for binding in retired {
            try await administrator.unbind(
                queue: binding.queue, exchange: binding.exchange, routingKey: binding.routingKey)
        }
    }

    private func declare(_ exchange: Exchange, using administrator: AMQPAdministrator) async throws(AMQPError) {
        let alternate = exchange.alternate.map { ["alternate-exchange": AMQPValue.text($0)] }
        try await administrator.declareExchange(
            name: exchange.name, kind: exchange.kind.rawValue, arguments: alternate ?? [:])
    }

    private func bind(_ bindings: [Binding], using administrator: AMQPAdministrator) async throws(AMQPError) {
        for binding in bindings {
            try await administrator.bind(
                queue: binding.queue, exchange: binding.exchange, routingKey: binding.routingKey)
        }
    }

    /// Declares `exchange`, unless the broker has it with its former kind.
    ///
    /// - Returns: whether the broker has it with its former kind.
    /// - Throws: 406 for an exchange that differs in any other way.
    private func isOutdated(
        _ exchange: Exchange, using administrator: AMQPAdministrator
    ) async throws(AMQPError) -> Bool {
        do throws(AMQPError) {
            try await declare(exchange, using: administrator)
            return false
        } catch {
            guard error.code == .channelClosed(replyCode: 406), let former = exchange.formerKind else { throw error }
            // Only an exchange that is exactly as an earlier release declared it takes this declaration.
            try await administrator.declareExchange(name: exchange.name, kind: former.rawValue)
            return true
        }
    }
}

extension AMQPValue {
    fileprivate init(_ argument: Topology.Argument) {
        switch argument {
        case .text(let text): self = .text(text)
        case .number(let number): self = .int(number)
        }
    }
}
