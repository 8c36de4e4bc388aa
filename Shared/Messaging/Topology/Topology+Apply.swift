package import AMQP
package import PushProtocol

extension Topology {
    /// Declares everything on the broker: exchanges, then queues, then bindings. What is already there as described is
    /// left as it is, so applying twice is applying once.
    ///
    /// - Throws: `AMQPError`; 406 names the queue and the argument that differ. Nothing is ever deleted to make room.
    package func apply(using administrator: AMQPAdministrator) async throws(AMQPError) {
        for exchange in exchanges {
            try await administrator.declareExchange(name: exchange.name, kind: exchange.kind.rawValue)
        }
        for queue in queues {
            try await administrator.declareQueue(
                name: queue.name, arguments: queue.arguments.mapValues(AMQPValue.init))
        }
        for binding in bindings {
            try await administrator.bind(
                queue: binding.queue, exchange: binding.exchange, routingKey: binding.routingKey)
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
