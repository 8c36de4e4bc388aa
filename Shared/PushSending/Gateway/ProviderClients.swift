package import PushProtocol
import HTTP2
import ServiceLifecycle

/// Records the connection metrics of a sender's clients, and shuts the clients down after the stage has drained.
package struct ProviderClients: Service {
    package static var interval: Duration { .seconds(1) }

    private let clients: @Sendable () -> [ProviderClient]
    private let provider: Provider
    private let clock: SenderClock

    /// - Parameter clients: the clients now; apps may be added.
    package init(
        _ clients: @escaping @Sendable () -> [ProviderClient], provider: Provider, clock: SenderClock = .system
    ) {
        self.clients = clients
        self.provider = provider
        self.clock = clock
    }

    /// Records until graceful shutdown, then waits for the requests in flight.
    package func run() async throws {
        await cancelWhenGracefulShutdown {
            var metrics: [ProviderClient.Label: ConnectionMetrics] = [:]
            // Cancelled by the shutdown only.
            repeat {
                record(&metrics)
            } while (try? await clock.sleep(Self.interval)) != nil
        }
        await shutdown()
    }

    /// Records all clients. A client that serves a further app has a new label from then on; its counters continue.
    private func record(_ metrics: inout [ProviderClient.Label: ConnectionMetrics]) {
        let clients = clients().map { (client: $0, label: $0.label) }
        let labels = Set(clients.map(\.label))
        let former = metrics.filter { !labels.contains($0.key) }
        for (client, label) in clients {
            guard let current = client.current() else { continue }
            let last = former.values.first { $0.counts(current) }
            metrics[label, default: ConnectionMetrics(client, provider: provider, after: last)].record(current)
        }
        for (label, gauges) in former {
            gauges.recordEnd()
            metrics[label] = nil
        }
    }

    /// Closes the connections after the requests in flight.
    package func shutdown() async {
        await withDiscardingTaskGroup { group in
            for client in clients() {
                group.addTask { await client.current()?.shutdown() }
            }
        }
    }
}
