package import AMQP
package import PushProtocol

/// What the broker lacks.
package enum TopologyProblem: Hashable, Sendable {
    case missingExchange(String)
    case missingQueue(String)
}

extension TopologyProblem: CustomStringConvertible {
    package var description: String {
        switch self {
        case .missingExchange(let name): "the exchange \(name) is missing; run `pushctl topology apply`"
        case .missingQueue(let name): "the queue \(name) is missing; run `pushctl topology apply`"
        }
    }
}

extension Topology {
    /// Asks whether every exchange and queue is there, which needs no right to configure. Their kinds, arguments and
    /// bindings cannot be asked for over AMQP: a binding that is missing shows as a returned publish.
    package func verify(using administrator: AMQPAdministrator) async throws(AMQPError) -> [TopologyProblem] {
        var problems: [TopologyProblem] = []
        for exchange in exchanges where try await !administrator.exchangeExists(exchange.name) {
            problems.append(.missingExchange(exchange.name))
        }
        for queue in queues where try await administrator.queueStatus(queue.name) == nil {
            problems.append(.missingQueue(queue.name))
        }
        return problems
    }

    /// The part that a stage depends on: the queues it consumes, the exchanges it publishes to and the queues that take
    /// it from there, the streams it reads, with the ways every stage needs for its retries and dead letters.
    package func part(
        consuming work: [WorkQueue], publishingTo targets: [ExchangeName], reading streams: [StreamName] = []
    ) -> Topology {
        let retries = RetryLevel.allCases
        let marks: [ExchangeName] = streams.isEmpty ? [] : [.marks]
        let targetNames = reached(from: Set(targets.map(\.name)))
        let exchangeNames = targetNames.union((marks + retries.map { .retry($0) } + [.return, .dead]).map(\.name))
        let takers = bindings.filter { targetNames.contains($0.exchange) }.map(\.queue)
        let queueNames = Set(
            work.flatMap { [$0.name, $0.deadName] } + retries.map(\.queueName) + streams.map(\.rawValue) + takers)
        return Topology(
            exchanges: exchanges.filter { exchangeNames.contains($0.name) },
            queues: queues.filter { queueNames.contains($0.name) },
            bindings: bindings.filter { exchangeNames.contains($0.exchange) && queueNames.contains($0.queue) },
            links: links.filter { exchangeNames.contains($0.source) })
    }

    /// The named exchanges, the exchanges they are linked to, and the alternates of both.
    private func reached(from names: Set<String>) -> Set<String> {
        let linked = names.union(links.filter { names.contains($0.source) }.map(\.destination))
        return linked.union(exchanges.filter { linked.contains($0.name) }.compactMap(\.alternate))
    }
}
