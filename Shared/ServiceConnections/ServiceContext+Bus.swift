package import AMQP
package import Messaging
package import PushProtocol
package import ServiceKit
package import ServiceLifecycle
package import TraceExport
import Metrics

/// The two broker connections, the bus over them, and their services.
package struct BusAssembly: Sendable {
    package let publisher: AMQPPublisher
    package let consumer: AMQPConsumer
    package let bus: AMQPBus
    /// The notifications that the stages of this bus settle.
    package let census = CensusLog()
    /// Creates the spans of messages; `nil` without a receiver of traces.
    package let tracer: SpanTracer?
    /// Run them before the stages that use the bus, so that they shut down after them.
    package let services: [any Service]
}

extension ServiceContext {
    /// Returns the configuration of a broker connection from `AMQP_URL` and `AMQP_CA_FILE`.
    ///
    /// - Parameter purpose: a suffix of the connection's name in the broker's list. Publishers also append `out`,
    ///   consumers `in`.
    package func amqp(_ purpose: String = "") throws(ConfigurationError) -> AMQPConfiguration {
        let suffix = purpose.isEmpty ? "" : " \(purpose)"
        return try settings.amqp(connectionName: "\(name) \(instance)\(suffix)", logger: logger)
    }

    /// Creates the bus and registers three readiness conditions: each connection is up, and the topology for `queues`
    /// and `exchanges` exists, including the queues bound to them. All are retried without a limit. Records every
    /// acknowledged delivery in the timer `heliograph_delivery_to_ack_seconds` (label `stage`).
    ///
    /// - Parameters:
    ///   - streams: the streams that the process reads (``read(_:on:apply:)``).
    ///   - apps: the apps whose queues must exist; by default the apps of `queues`.
    package func bus(
        queues: [WorkQueue], publishingTo exchanges: [ExchangeName] = [], reading streams: [StreamName] = [],
        apps: [AppID]? = nil
    ) throws(ConfigurationError) -> BusAssembly {
        let publisher = AMQPPublisher(configuration: try amqp(), logger: logger)
        let waits = Timer(
            label: "heliograph_delivery_to_ack_seconds", dimensions: [("stage", name)], preferredDisplayUnit: .seconds)
        let consumer = AMQPConsumer(configuration: try amqp(), logger: logger) { durations in
            for duration in durations { waits.record(duration: duration) }
        }
        let incoming = ConnectionCondition()
        watch(publisher)
        readiness.register("broker-in") { incoming.state(of: consumer.state) }
        let topology = Topology(apps: apps ?? Array(Set(queues.compactMap(\.app))), reports: .consuming(queues))
            .subset(consuming: queues, publishingTo: exchanges, reading: streams)
        let check = try topologyCheck(topology)
        let tracing = try tracing()
        return BusAssembly(
            publisher: publisher, consumer: consumer, bus: AMQPBus(publisher: publisher, consumer: consumer),
            tracer: tracing.tracer, services: tracing.services + [publisher, consumer, check])
    }
}

/// The broker connection of a service that only publishes, and its services.
package struct PublisherAssembly: Sendable {
    package let publisher: AMQPPublisher
    /// Creates the spans of published messages; `nil` without a receiver of traces.
    package let tracer: SpanTracer?
    /// Run them before the services that publish, so that they shut down after them.
    package let services: [any Service]
}

extension ServiceContext {
    /// Creates a publisher and registers two readiness conditions: it is connected, and the topology for `exchanges`
    /// exists, including the queues bound to them. Both are retried without a limit.
    package func publisher(
        to exchanges: [ExchangeName], apps: [AppID]
    ) throws(ConfigurationError) -> PublisherAssembly {
        let publisher = AMQPPublisher(configuration: try amqp(), logger: logger)
        watch(publisher)
        let check = try topologyCheck(Topology(apps: apps).subset(consuming: [], publishingTo: exchanges))
        let tracing = try tracing()
        return PublisherAssembly(
            publisher: publisher, tracer: tracing.tracer,
            services: tracing.services + [publisher, check])
    }

    /// Registers the readiness condition of a publishing connection, and exports its state.
    private func watch(_ publisher: AMQPPublisher) {
        let outgoing = ConnectionCondition()
        readiness.register("broker-out") { outgoing.state(of: publisher.state) }
        samples.register("heliograph_broker_blocked") {
            if case .blocked = publisher.state { 1 } else { 0 }
        }
    }

    private func topologyCheck(_ topology: Topology) throws(ConfigurationError) -> StartupCheck {
        let configuration = try amqp("check")
        return StartupCheck(
            condition: "topology", readiness: readiness, logger: logger,
            waiting: "the topology has not been checked yet"
        ) { [logger] in
            let problems = try await AMQPAdministrator.with(configuration, logger: logger) { administrator in
                try await topology.verify(using: administrator)
            }
            return problems.first.map { "\($0)\(problems.count > 1 ? " (and \(problems.count - 1) more)" : "")" }
        }
    }
}

extension ServiceContext {
    /// Creates the service that adds new apps while the process runs. Verifies that the queues of an app exist before
    /// it calls `add`.
    ///
    /// - Parameters:
    ///   - served: the apps that the process serves from its start.
    ///   - files: the kinds of files that the process uses.
    ///   - queues: the queues of an app that the process consumes.
    ///   - exchanges: the exchanges that the process publishes to; the app's queues behind them must exist too.
    ///   - add: starts to serve an app and to consume its queues. Throws if the app cannot be served yet.
    package func appReloader(
        _ served: AppCatalog, using files: AppCatalog.Files,
        consuming queues: @escaping @Sendable (AppConfiguration) -> [WorkQueue],
        publishingTo exchanges: [ExchangeName],
        add: @escaping @Sendable (AppConfiguration, [WorkQueue]) async throws -> Void
    ) throws(ConfigurationError) -> AppReloader {
        let configuration = try amqp("apps")
        return try appReloader(served, using: files) { [logger] app in
            let queues = queues(app)
            let topology = Topology(apps: [app.id], reports: .consuming(queues)).subset(
                consuming: queues, publishingTo: exchanges)
            let problems = try await AMQPAdministrator.with(configuration, logger: logger) { administrator in
                try await topology.verify(using: administrator)
            }
            if let problem = problems.first { throw AppNotReady(reason: "\(problem)") }
            try await add(app, queues)
        }
    }
}

extension ReportConsumers {
    /// The webhooks of queues. Without kinds, because a process cannot verify bindings.
    fileprivate static func consuming(_ queues: [WorkQueue]) -> ReportConsumers {
        ReportConsumers(
            webhooks: queues.compactMap {
                guard case .webhookReports(let app, let name) = $0 else { return nil }
                return Webhook(app: app, name: name, kinds: [])
            })
    }
}

/// A new app whose queues do not exist yet.
struct AppNotReady: Error, CustomStringConvertible {
    let reason: String
    var description: String { reason }
}

package struct StreamAssembly: Sendable {
    package let reader: StreamReader
    /// Run them after the bus's services, and before services that use the stream.
    package let services: [any Service]
}

extension ServiceContext {
    /// Reads a stream on a separate connection. Registers a readiness condition with the stream's name, which holds
    /// once the stream was read to its end. Later interruptions make it degraded; the process stays ready.
    package func read(
        _ stream: StreamName, on bus: BusAssembly, apply: @escaping @Sendable ([[UInt8]]) -> Void,
        onGap: @escaping @Sendable () -> Void
    ) throws(ConfigurationError) -> StreamAssembly {
        let consumer = AMQPConsumer(configuration: try amqp(stream.rawValue), logger: logger)
        let reader = StreamReader(
            stream, service: name, consumer: consumer, publisher: bus.publisher, logger: logger, apply: apply,
            onGap: onGap)
        readiness.register(stream.rawValue) {
            switch reader.status {
            case .following: .holds
            case .reading(let trouble): .waiting(trouble ?? "\(stream.rawValue) is being read")
            case .interrupted(let trouble): .degraded(trouble)
            }
        }
        return StreamAssembly(reader: reader, services: [consumer, reader])
    }

    /// Reports the settled notifications of all stages on `bus`. Publishes to the exchange `census`.
    ///
    /// Run it after the bus's services, and before the stages.
    package func censusReporter(on bus: BusAssembly) -> CensusReporter {
        let consumer = bus.consumer
        return CensusReporter(
            service: name, log: bus.census, bus: bus.bus, oldest: { consumer.oldestUnsettled }, logger: logger)
    }

    /// Creates a stage on `bus` with a readiness condition: its dependencies are reachable, and its queues are
    /// consumed.
    ///
    /// - Parameter name: the condition's name, unique in the process.
    package func stage(
        _ name: String = "stage", queues: [WorkQueue],
        policy: @escaping @Sendable (WorkQueue) -> StagePolicy = { _ in StagePolicy() }, on bus: BusAssembly,
        handler: some StageHandler
    ) throws(ConfigurationError) -> Stage {
        let drainDeadline = try drainDeadline
        let stage = Stage(
            service: self.name, queues: queues,
            policy: { queue in
                var policy = policy(queue)
                policy.drainDeadline = drainDeadline
                return policy
            }, bus: bus.bus, handler: handler, census: bus.census, tracer: bus.tracer, logger: logger)
        let consumer = bus.consumer
        readiness.register(name) {
            StageCondition.state(of: stage.status, on: consumer.state, waiting: consumer.waitingQueues)
        }
        return stage
    }

    /// The time for a stage to finish its batches: four fifths of `HELIOGRAPH_SHUTDOWN_DEADLINE`. The rest of the time
    /// is for requeueing unfinished messages.
    var drainDeadline: Duration {
        get throws(ConfigurationError) { try settings.duration(.shutdownDeadline) * 4 / 5 }
    }
}
