import AMQP
import Foundation
import Logging
import Messaging
import PushProtocol
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

/// A stream on the real broker: read from its past, to its end, and on.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(4)))
struct StreamReaderTests {
    /// What a reader was given.
    private final class Heard: Sendable {
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
        configuration.backoff = BackoffPolicy(base: .milliseconds(10), cap: .milliseconds(100))
        return configuration
    }

    /// A virtual host with the topology.
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
        _ url: String, through proxy: FaultProxy? = nil, _ body: @Sendable (StreamReader, Heard) async throws -> Void
    ) async throws {
        let heard = Heard()
        let publisher = AMQPPublisher(configuration: try configuration(url), logger: .silent)
        let consumer = AMQPConsumer(configuration: try configuration(url, through: proxy), logger: .silent)
        let reader = StreamReader(
            .senderRevocations, service: "test", consumer: consumer, publisher: publisher, logger: .silent,
            apply: heard.note, onGap: heard.noteGap)
        try await withServices([publisher, consumer, reader]) { try await body(reader, heard) }
    }

    @Test func `when it has caught up it has read everything of before, and goes on`() async throws {
        try await Self.withBroker { url, administrator in
            try await Self.publish(0..<3000, administrator)
            try await Self.withReader(url) { reader, heard in
                #expect(await reader.caughtUp())
                #expect(heard.all == (0..<3000).map(String.init))
                #expect(reader.condition == .following)
                try await Self.publish(3000..<3100, administrator)
                try await eventually("the rest comes") { heard.all.count >= 3100 }
                #expect(heard.all == (0..<3100).map(String.init))
                #expect(heard.gaps == 0)
            }
            // Reading takes nothing away.
            try await Self.withReader(url) { reader, heard in
                #expect(await reader.caughtUp())
                #expect(heard.all == (0..<3100).map(String.init))
            }
        }
    }

    @Test func `an empty stream is read to its end at once, and followed`() async throws {
        try await Self.withBroker { url, administrator in
            try await Self.withReader(url) { reader, heard in
                #expect(await reader.caughtUp())
                #expect(heard.all == [])
                try await Self.publish(0..<3, administrator)
                try await eventually("they come") { heard.all == ["0", "1", "2"] }
            }
        }
    }

    @Test func `two readers follow each other's marks past, and hear the same`() async throws {
        try await Self.withBroker { url, administrator in
            try await Self.publish(0..<100, administrator)
            try await Self.withReader(url) { first, heardFirst in
                try await Self.withReader(url) { second, heardSecond in
                    let both = await (first.caughtUp(), second.caughtUp())
                    #expect(both == (true, true))
                    #expect(heardFirst.all == heardSecond.all && heardFirst.all.count == 100)
                }
            }
        }
    }

    @Test func `what was published while it was cut off is heard afterwards`() async throws {
        try await Self.withBroker { url, administrator in
            let proxy = try FaultProxy(target: URLComponents(string: url)?.port ?? 5672)
            defer { proxy.stop() }
            try await Self.publish(0..<50, administrator)
            try await Self.withReader(url, through: proxy) { reader, heard in
                #expect(await reader.caughtUp())
                for round in 1...3 {
                    proxy.holdAnswers()
                    try await Self.publish(round * 50..<(round + 1) * 50, administrator)
                    proxy.cut()
                    proxy.thaw()
                    try await eventually("round \(round) is heard") { Set(heard.all).count == (round + 1) * 50 }
                }
                try await eventually("it follows again") { reader.condition == .following }
                // Read by number: no clock takes part, and only the last message of each round may come twice.
                #expect(heard.all.count <= 200 + 3)
                #expect(heard.gaps == 0)
            }
        }
    }

    @Test func `a stream that is deleted and declared anew is read from its beginning`() async throws {
        try await Self.withBroker { url, administrator in
            try await Self.publish(0..<50, administrator)
            try await Self.withReader(url) { reader, heard in
                #expect(await reader.caughtUp())
                #expect(heard.gaps == 0)
                try await administrator.deleteQueue("senders.revocations")
                try await eventually("it notices") {
                    if case .interrupted = reader.condition { true } else { false }
                }
                try await Topology(apps: []).apply(using: administrator)
                try await Self.publish(50..<53, administrator)
                try await eventually("the new ones are heard") { heard.all.suffix(3) == ["50", "51", "52"] }
                try await eventually("it follows again") { reader.condition == .following }
                #expect(heard.gaps == 1)
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
            let isCut = Mutexed()
            try await eventually("the broker has dropped some", within: .seconds(60)) {
                try await Self.withReader(url) { reader, heard in
                    #expect(await reader.caughtUp())
                    #expect((heard.gaps == 1) == (heard.all.first != "0"))
                    if heard.gaps == 1 { isCut.set() }
                }
                return isCut.isSet
            }
        }
    }

    @Test func `without the stream nothing that depends on it begins, and it is told why`() async throws {
        struct Dependent: Service {
            let begun: Mutexed
            func run() async throws {
                begun.set()
                try await gracefulShutdown()
            }
        }
        try await Self.withBroker { url, administrator in
            try await administrator.deleteQueue("senders.revocations")
            let begun = Mutexed()
            try await Self.withReader(url) { reader, _ in
                try await withServices([AfterReading(reader, Dependent(begun: begun))]) {
                    try await eventually("it is told") {
                        guard case .reading(let why?) = reader.condition else { return false }
                        return why.contains("senders.revocations")
                    }
                    #expect(!begun.isSet)
                    try await Topology(apps: []).apply(using: administrator)
                    try await eventually("it begins") { begun.isSet }
                }
                // Shut down before its turn comes, it does not begin either.
                let late = Mutexed()
                try await administrator.deleteQueue("senders.revocations")
                try await Self.withReader(url) { waiting, _ in
                    try await withServices([AfterReading(waiting, Dependent(begun: late))]) {}
                }
                #expect(!late.isSet)
            }
        }
    }

    private final class Mutexed: Sendable {
        private let value = Mutex(false)
        var isSet: Bool { value.withLock { $0 } }
        func set() { value.withLock { $0 = true } }
    }
}
