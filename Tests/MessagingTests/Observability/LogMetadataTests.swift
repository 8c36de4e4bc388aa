import AMQP
import Foundation
import Logging
import PushProtocol
import TestSupport
import Testing

@testable import Messaging

/// The ids in log lines about messages.
@Suite(.timeLimit(.minutes(1))) struct LogMetadataTests {
    private static let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    private let id = UUID(uuidString: "7D0F0A2E-0000-4000-8000-000000000001")!

    private func inbound(
        _ queue: WorkQueue = .rulesEvents, messageID: String? = nil, headers: [String: String] = [:],
        _ body: String = ""
    )
        -> Inbound
    {
        Inbound(
            queue: queue, exchange: "x", routingKey: "demo.happened", messageID: messageID, headers: headers,
            body: Array(body.utf8), attempt: 2)
    }

    private func revocation(_ notifications: [UUID]) -> NotificationRevocation {
        NotificationRevocation(
            trace: Trace(id: id, correlation: "e-1", causation: "c-1", traceparent: Self.traceparent), app: demo,
            notifications: notifications, at: .now)
    }

    @Test func `a line about a message has its ids, its trace and its notifications in lower case`() {
        let delivery = Delivery(inbound: inbound(messageID: "other"), message: revocation([id]))
        let text = "7d0f0a2e-0000-4000-8000-000000000001"
        #expect(
            delivery.logMetadata == [
                "queue": "rules.events", "attempt": "2", "message_id": "\(text)", "correlation": "e-1",
                "causation": "c-1",
                "trace_id": "0af7651916cd43dd8448eb211c80319c", "notifications": ["\(text)"],
            ])
    }

    @Test func `a line names the first ten notifications of a message`() {
        let ids = (0..<11).map { _ in UUID() }
        let texts = ids.prefix(10).map { Logger.MetadataValue.string($0.uuidString.lowercased()) }
        #expect(revocation(ids).logMetadata["notifications"] == .array(texts))
    }

    @Test func `a line about an event has the event's id and trace`() {
        let event = DomainEvent(app: demo, id: "e-1", source: "/s", type: "happened", traceparent: Self.traceparent)
        let metadata = Delivery(inbound: inbound(messageID: "m-1"), message: event).logMetadata
        #expect(metadata["correlation"] == "e-1" && metadata["message_id"] == "m-1")
        #expect(metadata["trace_id"] == "0af7651916cd43dd8448eb211c80319c")
    }

    @Test(
        arguments: [
            (#"{"id":"e-1","specversion":"0.3"}"#, [:], "e-1"), (#"{"id":7}"#, [:], "-"), ("not JSON", [:], "-"),
            ("not JSON", ["cloudEvents:id": "e-2"], "e-2"),
        ] as [(String, [String: String], String)])
    func `a line about an undecodable event has the event's id if it can be read`(
        body: String, headers: [String: String], id: String
    ) {
        let metadata = inbound(headers: headers, body).logMetadata
        #expect(metadata["correlation"] == "\(id)" && metadata["message_id"] == "-")
    }

    @Test func `the body of other messages is not searched for an id`() {
        #expect(inbound(.rulesOutcomes, #"{"id":"e-1"}"#).logMetadata["correlation"] == "-")
    }

    @Test func `a line about a published message has its ids and its destination`() {
        #expect(
            Outbound.notification("a").message(from: "rules").logMetadata == [
                "exchange": "notifications", "routing_key": "interactive.demo", "message_id": "out-a",
                "correlation": "c",
            ])
    }

    @Test(arguments: [Logger.Level.info, .debug])
    func `each settled message has a line with its correlation at debug, and only the dead letter at info`(
        level: Logger.Level
    ) async throws {
        let log = CapturingLogger()
        var logger = log.logger
        logger.logLevel = level
        let bus = InMemoryBus(apps: [demo])
        let handler = ScriptedHandler(each: { delivery in
            switch delivery.message {
            case "out": .done([.notification("a")])
            case "dead": Verdict(.deadLetter(.test))
            default: .done
            }
        })
        try await withStage(bus, handler, logger: logger) { _ in
            for text in ["in", "out", "dead", "poison"] {
                bus.event(text, properties: AMQPProperties(messageID: text, correlationID: "e-\(text)"))
            }
            try await eventually { bus.isSettled(queue.name) && bus.texts(in: "\(queue.name).dead").count == 2 }
        }
        let settled = log.lines.filter { $0.message.hasPrefix("Settled") }
        let expected = level == .debug ? ["in", "out", "dead", "poison"] : ["dead", "poison"]
        #expect(Set(settled.compactMap { $0.metadata["correlation"]?.description }) == Set(expected.map { "e-\($0)" }))
        #expect(settled.count == expected.count)
        #expect(settled.allSatisfy { $0.metadata["queue"] == "rules.events" && $0.metadata["attempt"] == "1" })
    }
}
