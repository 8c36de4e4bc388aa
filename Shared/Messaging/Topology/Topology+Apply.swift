package import AMQP
package import PushProtocol

extension Topology {
    /// Declares exchanges, then queues, then bindings. Idempotent: existing objects stay unchanged.
    ///
    /// An exchange with its ``Exchange/formerKind`` is deleted and redeclared after the queues exist. Meanwhile
    /// publishers get 404 or 312 and publish again, and at-least-once dead-lettering keeps its messages.
    ///
    /// Bindings of earlier releases are removed last. Until then a message can reach an old and a new queue and be
    /// handled twice, like a redelivery. At no time is a message without a queue.
    ///
    /// - Throws: `AMQPError`; 406 names the queue or exchange that differs. Never deletes a queue.
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
        for link in exchangeBindings {
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

    /// Declares `exchange`, unless the broker has it with its former type.
    ///
    /// - Returns: Whether the broker has it with its former type.
    /// - Throws: 406 for any other difference.
    private func isOutdated(
        _ exchange: Exchange, using administrator: AMQPAdministrator
    ) async throws(AMQPError) -> Bool {
        do throws(AMQPError) {
            try await declare(exchange, using: administrator)
            return false
        } catch {
            guard error.code == .channelClosed(replyCode: 406), let former = exchange.formerKind else { throw error }
            // Succeeds only for an exchange exactly as an earlier release declared it.
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
