package import AMQP
package import Messaging
import Metrics
package import PushProtocol
package import ServiceLifecycle

/// Two connections to the broker, the bus over them, and what runs for it.
package struct BusAssembly: Sendable {
    package let publisher: AMQPPublisher
    package let consumer: AMQPConsumer
    package let bus: AMQPBus
    /// Come before the stages that use the bus: so they are shut down after them.
    package let services: [any Service]
}

extension ServiceContext {
    /// The broker of `AMQP_URL`, trusted by `AMQP_CA_FILE`.
    ///
    /// - Parameter purpose: tells this process's connections apart in the broker's list, where that of a publisher
    ///   already ends in `out` and that of a consumer in `in`.
    package func amqp(_ purpose: String = "") throws(ConfigurationError) -> AMQPConfiguration {
        let suffix = purpose.isEmpty ? "" : " \(purpose)"
        return try settings.amqp(connectionName: "\(name) \(instance)\(suffix)", logger: logger)
    }

    /// The bus, with three readiness conditions: that each connection is up, and that the topology is there for a stage
    /// that takes from `queues` and publishes to `exchanges`, those queues included that take what it publishes. All
    /// are tried for as long as it takes. Every acknowledged delivery is an observation of the timer
    /// `heliograph_delivery_to_ack_seconds` (label `stage`).
    ///
    /// - Parameters:
    ///   - streams: which the process reads besides (``read(_:on:apply:)``).
    ///   - apps: whose queues are looked for; by default the apps that `queues` are for.
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
        let outgoing = ConnectionCondition()
        let incoming = ConnectionCondition()
        readiness.register("broker-out") { outgoing.state(of: publisher.state) }
        readiness.register("broker-in") { incoming.state(of: consumer.state) }
        let topology = Topology(apps: apps ?? Array(Set(queues.compactMap(\.app))))
            .part(consuming: queues, publishingTo: exchanges, reading: streams)
        let configuration = try amqp("check")
        let check = StartupCheck(
            condition: "topology", readiness: readiness, logger: logger, waiting: "the topology was not looked at yet"
        ) { [logger] in
            let problems = try await AMQPAdministrator.with(configuration, logger: logger) { administrator in
                try await topology.verify(using: administrator)
            }
            return problems.first.map { "\($0)\(problems.count > 1 ? " (and \(problems.count - 1) more)" : "")" }
        }
        return BusAssembly(
            publisher: publisher, consumer: consumer, bus: AMQPBus(publisher: publisher, consumer: consumer),
            services: [publisher, consumer, check])
    }
}

/// A reader of a stream, and what runs for it.
package struct StreamAssembly: Sendable {
    package let reader: StreamReader
    /// Come after the bus's, and before what depends on the stream.
    package let services: [any Service]
}

extension ServiceContext {
    /// Reads a stream on a connection of its own, with a readiness condition by its name: that it was read to its end
    /// once. That it is interrupted later is told, and does not take the process out of service.
    package func read(
        _ stream: StreamName, on bus: BusAssembly, apply: @escaping @Sendable ([[UInt8]]) -> Void,
        onGap: @escaping @Sendable () -> Void
    ) throws(ConfigurationError) -> StreamAssembly {
        let consumer = AMQPConsumer(configuration: try amqp(stream.rawValue), logger: logger)
        let reader = StreamReader(
            stream, service: name, consumer: consumer, publisher: bus.publisher, logger: logger, apply: apply,
            onGap: onGap)
        readiness.register(stream.rawValue) {
            switch reader.condition {
            case .following: .holds
            case .reading(let trouble): .waiting(trouble ?? "\(stream.rawValue) is being read")
            case .interrupted(let trouble): .degraded(trouble)
            }
        }
        return StreamAssembly(reader: reader, services: [consumer, reader])
    }

    /// A stage on `bus`, with a readiness condition: nothing it depends on is away, and its queues can be consumed.
    ///
    /// - Parameter name: tells it from the process's other stages.
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
            }, bus: bus.bus, handler: handler, logger: logger)
        let consumer = bus.consumer
        readiness.register(name) {
            StageCondition.state(of: stage.status, on: consumer.state, waiting: consumer.waitingQueues)
        }
        return stage
    }

    /// How long a stage may finish what it has begun: four fifths of `HELIOGRAPH_SHUTDOWN_DEADLINE`. What is cut short then
    /// goes back to the broker while there is still time for it.
    var drainDeadline: Duration {
        get throws(ConfigurationError) { try settings.duration(.shutdownDeadline) * 4 / 5 }
    }
}
