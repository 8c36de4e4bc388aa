import ServiceLifecycle

/// The clients of one sender, shut down together after the stage has drained.
package struct ProviderClients: Service {
    private let shutdown: @Sendable () async -> Void

    /// `shutdown` ends those that there are by then, and waits for the requests in flight.
    package init(shutdown: @escaping @Sendable () async -> Void) { self.shutdown = shutdown }

    /// Waits for graceful shutdown, then for the requests in flight.
    package func run() async throws {
        // Cancellation ends the wait as well; closing is right either way.
        try? await gracefulShutdown()
        await shutdown()
    }
}
