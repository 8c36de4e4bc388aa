internal import Logging
internal import ServiceLifecycle

/// Starts a connection's thread and its guard, and ends them with the service that owns them.
struct Owner {
    let configuration: AMQPConfiguration
    /// `in` or `out`: the end of the connection's name at the broker, and of the thread's.
    let name: String
    let link: Link
    let logger: Logger

    /// Returns when the thread has ended. The role is made on the thread, and never leaves it.
    ///
    /// - Throws: when it has run before, and when the system has no descriptor or thread left.
    func run(_ makeRole: @escaping @Sendable (Logger) -> some ConnectionRole) async throws(AMQPError) {
        guard link.start() else {
            throw AMQPError(.closed, operation: "run the \(name) connection", detail: "it has run before")
        }
        var logger = logger
        logger[metadataKey: "amqp"] = "\(name)"
        let (link, configuration, connectionName) = (link, configuration, "\(configuration.connectionName) \(name)")
        let threadName = "amqp-\(name)"
        let drain = configuration.timeouts.drain
        if let fault = link.wakeup.fault { throw fault }
        let stallGuard = StallGuard(limit: configuration.heartbeat * 2, link.resources)
        try stallGuard.start(threadName) { [logger] age in
            logger.error("the connection's thread was stuck; its socket was shut down", metadata: ["for": "\(age)"])
        }
        defer { stallGuard.end() }
        let work: @Sendable () -> Void = { [logger] in
            var loop = ConnectionLoop(
                name: connectionName, configuration: configuration, link: link, stallGuard: stallGuard, logger: logger,
                role: makeRole(logger))
            loop.run()
        }
        let outcome: Result<Void, AMQPError> = await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                do throws(AMQPError) {
                    try await IOThread.run(threadName, link.resources, work)
                    return .success(())
                } catch {
                    return .failure(error)
                }
            } onGracefulShutdown: {
                link.end(.graceful(until: .now + drain))
            }
        } onCancel: {
            link.end(.now)
        }
        try outcome.get()
    }
}
