package import AMQP
package import PushProtocol

/// A missing object on the broker.
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
    /// Checks with passive declares, which need no configure permission, that every exchange and queue exists. AMQP
    /// cannot query types, arguments and bindings; a missing binding shows as a returned publish.
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

    /// The part of the topology that a stage uses: its work queues, the exchanges it publishes to with their bound
    /// queues, the streams it reads, and the retry and dead-letter exchanges.
    package func subset(
        consuming work: [WorkQueue], publishingTo targets: [ExchangeName], reading streams: [StreamName] = []
    ) -> Topology {
        let retries = RetryLevel.allCases
        let marks: [ExchangeName] = streams.isEmpty ? [] : [.marks]
        let targetNames = reachableExchanges(from: Set(targets.map(\.name)))
        let exchangeNames = targetNames.union((marks + retries.map { .retry($0) } + [.return, .dead]).map(\.name))
        let boundQueues = bindings.filter { targetNames.contains($0.exchange) }.map(\.queue)
        let queueNames = Set(
            work.flatMap { [$0.name, $0.deadName] } + retries.map(\.queueName) + streams.map(\.rawValue) + boundQueues)
        return Topology(
            exchanges: exchanges.filter { exchangeNames.contains($0.name) },
            queues: queues.filter { queueNames.contains($0.name) },
            bindings: bindings.filter { exchangeNames.contains($0.exchange) && queueNames.contains($0.queue) },
            exchangeBindings: exchangeBindings.filter { exchangeNames.contains($0.source) })
    }

    /// The named exchanges, the exchanges bound to them, and the alternate exchanges of both.
    private func reachableExchanges(from names: Set<String>) -> Set<String> {
        let linked = names.union(exchangeBindings.filter { names.contains($0.source) }.map(\.destination))
        return linked.union(exchanges.filter { linked.contains($0.name) }.compactMap(\.alternate))
    }
}
