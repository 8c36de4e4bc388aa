internal import Logging
internal import ServiceLifecycle

/// Starts a connection's thread and its watchdog, and ends both with their service.
struct ConnectionThread {
    let configuration: AMQPConfiguration
    /// `in` or `out`: the suffix of the connection name and of the thread name.
    let name: String
    let control: ConnectionControl
    let logger: Logger

    /// Runs the thread until its end. The role is created and used on the thread.
    ///
    /// - Throws: `closed` on the second run, and `configuration` when no descriptor or thread is available.
    func run(_ makeRole: @escaping @Sendable (Logger) -> some ConnectionRole) async throws(AMQPError) {
        guard control.start() else {
            throw AMQPError(.closed, operation: "run the \(name) connection", detail: "it already ran")
        }
        var logger = logger
        logger[metadataKey: "amqp"] = "\(name)"
        let (control, configuration, connectionName) = (
            control, configuration, "\(configuration.connectionName) \(name)"
        )
        let threadName = "amqp-\(name)"
        let drain = configuration.timeouts.drain
        if let fault = control.wakeup.fault { throw fault }
        let watchdog = SocketWatchdog(limit: configuration.heartbeat * 2, control.resources)
        try watchdog.start(threadName) { [logger] age in
            logger.error("Connection thread was stuck; socket shut down, reconnecting", metadata: ["for": "\(age)"])
        }
        defer { watchdog.end() }
        let work: @Sendable () -> Void = { [logger] in
            var loop = ConnectionLoop(
                name: connectionName, configuration: configuration, control: control, watchdog: watchdog,
                logger: logger,
                role: makeRole(logger))
            loop.run()
        }
        let outcome: Result<Void, AMQPError> = await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                do throws(AMQPError) {
                    try await IOThread.run(threadName, control.resources, work)
                    return .success(())
                } catch {
                    return .failure(error)
                }
            } onGracefulShutdown: {
                control.requestShutdown(.graceful(until: .now + drain))
            }
        } onCancel: {
            control.requestShutdown(.now)
        }
        try outcome.get()
    }
}
