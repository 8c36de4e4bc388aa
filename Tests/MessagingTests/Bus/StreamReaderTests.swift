import AMQP
import Foundation
import Logging
import Messaging
import Primitives
import PushProtocol
import ServiceLifecycle
import Synchronization
import Testing
import TestSupport

/// Reading a stream on the real broker: its past, its end, and new messages.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(4)))
struct StreamReaderTests {
    /// The bodies that a reader applied.
    private final class ReceivedTexts: Sendable {
        private let texts = Mutex<[String]>([])
        private let gapCount = Mutex(0)
        var gaps: Int { gapCount.withLock { $0 } }
        func noteGap() { gapCount.withLock { $0 += 1 } }
        var all: [String] { texts.withLock { $0 } }
        func note(_ bodies: [[UInt8]]) {
            texts.withLock { $0 += bodies.map { String(decoding: $0, as: UTF8.self) } }
        }
    }

    private static func configuration(_ url: String, through proxy: FaultProxy? = nil) throws -> AMQPConfiguration {
        var components = try #require(URLComponents(string: url))
        if let proxy { (components.host, components.port) = ("127.0.0.1", proxy.port) }
        var configuration = try AMQPConfiguration(url: components.string ?? url, connectionName: "stream tests")
        configuration.backoff = Backoff(base: .milliseconds(10), cap: .milliseconds(100))
        return configuration
    }

    /// Runs `body` with a virtual host that has the topology.
    private static func withBroker(
        _ body: @Sendable (String, AMQPAdministrator) async throws -> Void
    ) async throws {
        try await TestBroker.withVirtualHost { url in
            try await AMQPAdministrator.with(configuration(url), logger: .silent) { administrator in
                try await Topology(apps: []).apply(using: administrator)
                try await body(url, administrator)
            }
        }
    }

    private static func publish(_ texts: some Sequence<Int>, _ administrator: AMQPAdministrator) async throws {
        for text in texts {
            let message = AMQPMessage(exchange: "devices", routingKey: "event.signed-out", body: Array("\(text)".utf8))
            let answer = try await administrator.publish(message)
            #expect(answer == .confirmed)
        }
    }

    private static func withReader(
        _ url: String, through proxy: FaultProxy? = nil,
        _ body: @Sendable (StreamReader, ReceivedTexts) async throws -> Void
    ) async throws {
        let received = ReceivedTexts()
        let publisher = AMQPPublisher(configuration: try configuration(url), logger: .silent)
        let consumer = AMQPConsumer(configuration: try configuration(url, through: proxy), logger: .silent)
        let reader = StreamReader(
            .senderRevocations, service: "test", consumer: consumer, publisher: publisher, logger: .silent,
            apply: received.note, onGap: received.noteGap)
        try await withServices([publisher, consumer, reader]) { try await body(reader, received) }
    }

    @Test func `after catching up a reader has every earlier message and follows`() async throws {
        try await Self.withBroker { url, administrator in
            try await Self.publish(0..<3000, administrator)
            try await Self.withReader(url) { reader, received in
                #expect(await reader.caughtUp())
                #expect(received.all == (0..<3000).map(String.init))
                #expect(reader.status == .following)
                try await Self.publish(3000..<3100, administrator)
                try await eventually("the rest comes") { received.all.count >= 3100 }
                #expect(received.all == (0..<3100).map(String.init))
                #expect(received.gaps == 0)
            }
            // Reading removes nothing.
            try await Self.withReader(url) { reader, received in
                #expect(await reader.caughtUp())
                #expect(received.all == (0..<3100).map(String.init))
            }
        }
    }

    @Test func `an empty stream is caught up at once and followed`() async throws {
        try await Self.withBroker { url, administrator in
            try await Self.withReader(url) { reader, received in
                #expect(await reader.caughtUp())
                #expect(received.all == [])
                try await Self.publish(0..<3, administrator)
                try await eventually("the messages") { received.all == ["0", "1", "2"] }
            }
        }
    }

    @Test func `two readers ignore each other's marks and read the same messages`() async throws {
        try await Self.withBroker { url, administrator in
            try await Self.publish(0..<100, administrator)
            try await Self.withReader(url) { first, receivedFirst in
                try await Self.withReader(url) { second, receivedSecond in
                    let both = await (first.caughtUp(), second.caughtUp())
                    #expect(both == (true, true))
                    #expect(receivedFirst.all == receivedSecond.all && receivedFirst.all.count == 100)
                }
            }
        }
    }

    @Test func `messages published during an interruption are read afterwards`() async throws {
        try await Self.withBroker { url, administrator in
            let proxy = try FaultProxy(target: URLComponents(string: url)?.port ?? 5672)
            defer { proxy.stop() }
            try await Self.publish(0..<50, administrator)
            try await Self.withReader(url, through: proxy) { reader, received in
                #expect(await reader.caughtUp())
                for round in 1...3 {
                    proxy.holdResponses()
                    try await Self.publish(round * 50..<(round + 1) * 50, administrator)
                    proxy.cut()
                    proxy.resumeTraffic()
                    try await eventually("round \(round) is received") { Set(received.all).count == (round + 1) * 50 }
                }
                try await eventually("it follows again") { reader.status == .following }
                // Read by number: no clock takes part, and only the last message of each round may come twice.
                #expect(received.all.count <= 200 + 3)
                #expect(received.gaps == 0)
            }
        }
    }

    @Test func `a deleted and redeclared stream is read from its beginning`() async throws {
        try await Self.withBroker { url, administrator in
            try await Self.publish(0..<50, administrator)
            try await Self.withReader(url) { reader, received in
                #expect(await reader.caughtUp())
                #expect(received.gaps == 0)
                try await administrator.deleteQueue("senders.revocations")
                try await eventually("the reader detects the deletion") {
                    if case .interrupted = reader.status { true } else { false }
                }
                try await Topology(apps: []).apply(using: administrator)
                try await Self.publish(50..<53, administrator)
                try await eventually("the new messages") { received.all.suffix(3) == ["50", "51", "52"] }
                try await eventually("it follows again") { reader.status == .following }
                #expect(received.gaps == 1)
            }
        }
    }

    @Test func `given a stream that dropped its first messages for its length, then a new reader finds the gap`()
        async throws
    {
        try await Self.withBroker { url, administrator in
            try await administrator.deleteQueue("senders.revocations")
            try await administrator.declareQueue(
                name: "senders.revocations",
                arguments: [
                    "x-queue-type": .text("stream"), "x-max-length-bytes": .int(4000),
                    "x-stream-max-segment-size-bytes": .int(1000),
                ])
            var topology = Topology(apps: [])
            topology.queues.removeAll { $0.name == "senders.revocations" }
            try await topology.apply(using: administrator)
            try await Self.publish(0..<200, administrator)
            let isCut = Flag()
            try await eventually("the broker has dropped some", within: .seconds(60)) {
                try await Self.withReader(url) { reader, received in
                    #expect(await reader.caughtUp())
                    #expect((received.gaps == 1) == (received.all.first != "0"))
                    if received.gaps == 1 { isCut.set() }
                }
                return isCut.isSet
            }
        }
    }

    @Test func `a dependent service waits for the stream, and the status has the reason`() async throws {
        struct Dependent: Service {
            let begun: Flag
            func run() async throws {
                begun.set()
                try await gracefulShutdown()
            }
        }
        try await Self.withBroker { url, administrator in
            try await administrator.deleteQueue("senders.revocations")
            let begun = Flag()
            try await Self.withReader(url) { reader, _ in
                try await withServices([StartAfterCatchUp(reader, Dependent(begun: begun))]) {
                    try await eventually("the status has the reason") {
                        guard case .reading(let why?) = reader.status else { return false }
                        return why.contains("senders.revocations")
                    }
                    #expect(!begun.isSet)
                    try await Topology(apps: []).apply(using: administrator)
                    try await eventually("the service starts") { begun.isSet }
                }
                // After a shutdown before the end was reached, the service does not start.
                let late = Flag()
                try await administrator.deleteQueue("senders.revocations")
                try await Self.withReader(url) { waiting, _ in
                    try await withServices([StartAfterCatchUp(waiting, Dependent(begun: late))]) {}
                }
                #expect(!late.isSet)
            }
        }
    }

    private final class Flag: Sendable {
        private let value = Mutex(false)
        var isSet: Bool { value.withLock { $0 } }
        func set() { value.withLock { $0 = true } }
    }
}
