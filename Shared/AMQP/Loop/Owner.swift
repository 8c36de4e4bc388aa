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
    func run(_ makeRole: @escaping @Sendable (Logger) -> some ConnectionRole) async throws(AMQPError) {
        guard link.start() else {
            throw AMQPError(.closed, operation: "run the \(name) connection", detail: "it has run before")
        }
        var logger = logger
        logger[metadataKey: "amqp"] = "\(name)"
        let (link, configuration, connectionName) = (link, configuration, "\(configuration.connectionName) \(name)")
        let threadName = "amqp-\(name)"
        let drain = configuration.timeouts.drain
        let work: @Sendable () -> Void = { [logger] in
            let stallGuard = StallGuard(limit: configuration.heartbeat * 2)
            stallGuard.start(threadName) { age in
                logger.error("the connection's thread was stuck; its socket was shut down", metadata: ["for": "\(age)"])
            }
            var loop = ConnectionLoop(
                name: connectionName, configuration: configuration, link: link, stallGuard: stallGuard, logger: logger,
                role: makeRole(logger))
            loop.run()
            stallGuard.end()
        }
        await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await IOThread.run(threadName, work)
            } onGracefulShutdown: {
                link.end(.graceful(until: .now + drain))
            }
        } onCancel: {
            link.end(.now)
        }
    }
}
