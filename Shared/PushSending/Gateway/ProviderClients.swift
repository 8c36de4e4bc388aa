import HTTP2
package import PushProtocol
import ServiceLifecycle

/// The clients of one sender: shows how their connections are, and shuts them down together after the stage has drained.
package struct ProviderClients: Service {
    package static var pace: Duration { .seconds(1) }

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
            // Cancelled only when the process stops.
            repeat {
                for (index, client) in clients.enumerated() {
                    if let current = client.current() { metrics[index].record(current) }
                }
            } while (try? await clock.sleep(Self.pace)) != nil
        }
        await shutdown()
    }

    /// Ends the connections when what is in flight has been answered.
    package func shutdown() async {
        await withDiscardingTaskGroup { group in
            for client in clients {
                group.addTask { await client.current()?.shutdown() }
            }
        }
    }
}
