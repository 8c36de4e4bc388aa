package import HTTP2
import ServiceLifecycle

/// The clients of one sender, shut down together after the stage has drained.
package final class ProviderClients: Service, Sendable {
    private let clients: [HTTP2Client]

    package init(_ clients: [HTTP2Client]) { self.clients = clients }

    /// Waits for graceful shutdown, then for the requests in flight.
    package func run() async throws {
        // Cancellation ends the wait as well; closing is right either way.
        try? await gracefulShutdown()
        for client in clients { await client.shutdown() }
    }
}
