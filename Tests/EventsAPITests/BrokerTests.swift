import AMQP
import Foundation
import Logging
import Messaging
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import EventsAPI

/// Publishing to a real broker.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(3))) struct BrokerTests {
    private static let apps = [EventsHTTP.app, EventsHTTP.other]

    private static func incoming(_ id: String, type: String = "thing.happened") throws -> IncomingEvent {
        try EventReader(app: EventsHTTP.app).structured(Array(event(id, type: type).utf8))
    }

    /// Runs `body` with a publisher on a new virtual host.
    private static func withPublisher(
        deadline: Duration = .seconds(30), topology: Topology = Topology(apps: apps),
        _ body: @escaping @Sendable (EventPublisher, AMQPAdministrator) async throws -> Void
    ) async throws {
        try await TestBroker.withVirtualHost { url in
            let configuration = try AMQPConfiguration(url: url, connectionName: "test")
            try await AMQPAdministrator.with(configuration, logger: .silent) { administrator in
                try await topology.apply(using: administrator)
                let publisher = AMQPPublisher(configuration: configuration, logger: .silent)
                let running = Task { try await publisher.run() }
                defer { running.cancel() }
                let events = EventPublisher(
                    service: "events-api", deadline: deadline, logger: .silent,
                    send: { messages throws(AMQPError) in try await publisher.publish(messages) })
                try await body(events, administrator)
            }
        }
    }

    @Test func `confirmed events are in the app's queue, in order`() async throws {
        try await Self.withPublisher { publisher, administrator in
            let events = try (0..<EventPublisher.chunk + 20).map { try Self.incoming("e-\($0)") }
            #expect(await publisher.publish(events).allSatisfy { $0 == nil })
            let queue = WorkQueue.rulesAppEvents(EventsHTTP.app).name
            #expect(try await administrator.queueStatus(queue)?.messages == events.count)
            for expected in events.prefix(3) {
                let delivery = try #require(try await administrator.get(queue))
                #expect(delivery.body == expected.body)
                #expect(delivery.properties.persistent && delivery.routingKey == "demo.thing.happened")
                #expect(delivery.properties.contentType == CloudEvents.structuredContentType)
            }
        }
    }

    @Test func `an event that no queue takes is not accepted, and the others of the batch are`() async throws {
        var topology = Topology(apps: Self.apps)
        topology.exchangeBindings = []
        topology.bindings = topology.bindings.filter { $0.exchange != ExchangeName.events.name }
        topology.bindings.append(
            .init(exchange: "events", queue: WorkQueue.rulesAppEvents(EventsHTTP.app).name, routingKey: "demo.bound"))
        try await Self.withPublisher(topology: topology) { publisher, _ in
            let results = await publisher.publish([
                try Self.incoming("1", type: "bound"), try Self.incoming("2"), try Self.incoming("3", type: "bound"),
            ])
            #expect(results.map(\.?.status) == [nil, 503, nil])
        }
    }

    @Test func `an event for a full queue is not accepted`() async throws {
        var topology = Topology(apps: Self.apps)
        let queue = WorkQueue.rulesAppEvents(EventsHTTP.app).name
        let index = try #require(topology.queues.firstIndex { $0.name == queue })
        topology.queues[index].arguments["x-max-length"] = .number(1)
        try await Self.withPublisher(topology: topology) { publisher, administrator in
            var refused = 0
            // The broker counts a queue's length with a delay.
            for number in 0..<50 {
                let refusal = await publisher.publish([try Self.incoming("e-\(number)")])[0]
                if refusal?.status == 503 { refused += 1 }
            }
            #expect(refused > 0)
            #expect(try await administrator.queueStatus(queue)?.messages == 50 - refused)
        }
    }

    @Test func `while the broker is away, an event is neither accepted nor published later`() async throws {
        try await TestBus.run(apps: Self.apps) { bus in
            // Nothing listens on port 1 until the URL changes.
            let url = Mutex("amqp://nobody:x@127.0.0.1:1/none")
            var configuration = try AMQPConfiguration(url: url.withLock(\.self), connectionName: "test")
            configuration.currentURL = { url.withLock(\.self) }
            let publisher = AMQPPublisher(configuration: configuration, logger: .silent)
            let running = Task { try await publisher.run() }
            defer { running.cancel() }
            func events(_ deadline: Duration) -> EventPublisher {
                EventPublisher(
                    service: "events-api", deadline: deadline, logger: .silent,
                    send: { messages throws(AMQPError) in try await publisher.publish(messages) })
            }
            #expect(await events(.milliseconds(300)).publish([try Self.incoming("1")])[0]?.status == 503)
            url.withLock { $0 = bus.url }
            #expect(await events(.seconds(60)).publish([try Self.incoming("2")]) == [nil])
            let queue = WorkQueue.rulesAppEvents(EventsHTTP.app).name
            #expect(try await bus.status(queue).messages == 1)
        }
    }
}
