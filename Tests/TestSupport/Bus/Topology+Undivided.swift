package import PushProtocol

extension Topology {
    /// The bus without queues of single apps before the senders, as releases before declared it. The bus in memory has
    /// this topology, so that a test of a handler takes all of its input from one queue.
    package static func undivided(apps: [AppID]) -> Topology {
        var topology = Topology(apps: apps)
        let own = (WorkQueue.events(of: apps) + WorkQueue.notifications(of: apps) + WorkQueue.devices(of: apps))
            .filter { $0.app != nil }
        let queues = Set(own.flatMap { [$0.name, $0.deadName] })
        let exchanges = Set(
            AppInput.allCases.flatMap { [ExchangeName.byApp($0).name, ExchangeName.otherApps($0).name] })
        topology.queues.removeAll { queues.contains($0.name) }
        topology.exchanges.removeAll { exchanges.contains($0.name) }
        topology.bindings.removeAll { queues.contains($0.queue) || exchanges.contains($0.exchange) }
        topology.bindings += topology.retired
        topology.links = []
        topology.retired = []
        return topology
    }
}
