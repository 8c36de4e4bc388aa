package import PushProtocol

extension Topology {
    /// The topology without per-app queues before the senders, as in earlier releases. With it a test's handler has one
    /// input queue on the in-memory bus.
    package static func withoutPerAppQueues(apps: [AppID]) -> Topology {
        var topology = Topology(apps: apps)
        let own = (WorkQueue.events(of: apps) + WorkQueue.notifications(of: apps) + WorkQueue.devices(of: apps))
            .filter { $0.app != nil }
        let queues = Set(own.flatMap { [$0.name, $0.deadName] })
        let exchanges = Set(
            InputExchange.allCases.flatMap { [ExchangeName.byApp($0).name, ExchangeName.otherApps($0).name] })
        topology.queues.removeAll { queues.contains($0.name) }
        topology.exchanges.removeAll { exchanges.contains($0.name) }
        topology.bindings.removeAll { queues.contains($0.queue) || exchanges.contains($0.exchange) }
        topology.bindings += topology.retired.filter { binding in topology.queues.contains { $0.name == binding.queue }
        }
        topology.exchangeBindings = []
        topology.retired = []
        return topology
    }
}
