package import PushProtocol
import HTTP2
import ServiceLifecycle

/// Records the connection metrics of a sender's clients, and shuts the clients down after the stage has drained.
package struct ProviderClients: Service {
    package static var interval: Duration { .seconds(1) }

    private let clients: [ProviderClient]
    private let provider: Provider
    private let clock: SenderClock

    package init(_ clients: [ProviderClient], provider: Provider, clock: SenderClock = .system) {
        self.clients = clients
        self.provider = provider
        self.clock = clock
    }

    /// Records until graceful shutdown, then waits for the requests in flight.
    package func run() async throws {
        await cancelWhenGracefulShutdown {
            var metrics = clients.map { ConnectionMetrics($0, provider: provider) }
            // Cancelled by the shutdown only.
            repeat {
                for (index, client) in clients.enumerated() {
                    if let current = client.current() { metrics[index].record(current) }
                }
            } while (try? await clock.sleep(Self.interval)) != nil
        }
        await shutdown()
    }

    /// Closes the connections after the requests in flight.
    package func shutdown() async {
        await withDiscardingTaskGroup { group in
            for client in clients {
                group.addTask { await client.current()?.shutdown() }
            }
        }
    }
}
