import AMQP
import Logging
import Messaging
import Primitives
import PushProtocol
import Testing
import TestSupport

@testable import Pushctl

/// Dead letters on a real broker.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2))) struct DeadLetterTests {
    private static let queue = WorkQueue.rulesAppEvents(AppID(rawValue: "family-portal")!)

    private func withDeadLetters(_ body: @Sendable (DeadLetterIterator) async throws -> Void) async throws {
        try await TestBroker.withVirtualHost { url in
            let configuration = try AMQPConfiguration(url: url, connectionName: "dead letter tests")
            let logger = Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }
            try await AMQPAdministrator.with(configuration, logger: logger) { administrator in
                try await Topology(apps: [AppID(rawValue: "family-portal")!]).apply(using: administrator)
                let transactionChannel = try AMQPTransactionChannel(configuration, logger: logger)
                // A day after the letters of these tests were dead-lettered.
                let now = Timestamp(milliseconds: 1_767_225_600_000 + 86_400_000)
                try await body(
                    DeadLetterIterator(
                        administrator: administrator, transactionChannel: transactionChannel, now: { now }))
                await transactionChannel.close()
            }
        }
    }

    /// Publishes a dead letter as a stage does.
    private static func bury(_ id: String, reason: String, _ letters: DeadLetterIterator) async throws {
        let properties = AMQPProperties(
            contentType: "application/cloudevents+json", messageID: id, correlationID: "e-\(id)", type: "chat.written",
            headers: [
                HeaderName.attempt: 8, HeaderName.firstSeen: 1_000, HeaderName.exchange: "events",
                HeaderName.routingKey: "family-portal.chat.written", HeaderName.reason: .text(reason),
                HeaderName.detail: "it went wrong", HeaderName.queue: .text(queue.name), HeaderName.service: "rules",
                HeaderName.failedAt: 1_767_225_600_000, "upstream": "theirs",
            ])
        let message = AMQPMessage(
            exchange: ExchangeName.dead.name, routingKey: queue.name, properties: properties,
            body: Array("{\(id)}".utf8))
        #expect(try await letters.administrator.publish(message) == .confirmed)
    }

    /// Without the header that the broker counts up.
    private static func ownHeaders(_ delivery: AMQPDelivery) -> [String: AMQPValue] {
        delivery.properties.headers.filter { $0.key != "x-delivery-count" }
    }

    private static func look(_ letters: DeadLetterIterator, most: Int = 100) async throws -> [String] {
        var lines: [String] = []
        try await letters.forEachLetter(queue, most: most) { letter in
            lines.append(DeadLetterReport.table([letter]).lines()[1])
            return .keep
        }
        return lines
    }

    @Test func `show prints reasons and leaves the queue unchanged`() async throws {
        try await withDeadLetters { letters in
            try await Self.bury("1", reason: "provider-unavailable", letters)
            try await Self.bury("2", reason: "not-json", letters)
            let lines = [
                "2026-01-01T00:00:00Z         8  provider-unavailable  family-portal.chat.written  e-1    1        it went wrong",
                "2026-01-01T00:00:00Z         8  not-json  family-portal.chat.written  e-2    2        it went wrong",
            ]
            #expect(try await Self.look(letters) == lines)
            #expect(try await Self.look(letters) == lines)
            #expect(try await Self.look(letters, most: 1) == [lines[0]])
            #expect(try await Self.look(letters, most: 1) == [lines[1]])
            #expect(try await letters.depth(of: Self.queue) == 2)
            // Its expiration is unchanged, however often it is shown.
            let letter = try #require(try await letters.administrator.get(Self.queue.deadName))
            #expect(letter.properties.expiration == "\(13 * 86_400_000)")
        }
    }

    @Test func `a replayed letter reaches its stage as a new message, and the others stay`() async throws {
        try await withDeadLetters { letters in
            try await Self.bury("1", reason: "provider-unavailable", letters)
            try await Self.bury("2", reason: "not-json", letters)
            try await letters.forEachLetter(Self.queue, most: 100) { $0.reason == "not-json" ? .replay : .keep }
            #expect(try await letters.depth(of: Self.queue) == 1)
            let replayed = try #require(try await letters.administrator.get(Self.queue.name))
            #expect(replayed.exchange == "return" && replayed.body == Array("{2}".utf8))
            #expect(replayed.properties.messageID == "2" && replayed.properties.persistent)
            #expect(
                Self.ownHeaders(replayed) == [
                    HeaderName.exchange: "events", HeaderName.routingKey: "family-portal.chat.written",
                    "upstream": "theirs",
                ])
            try await letters.forEachLetter(Self.queue, most: 100) { _ in .drop }
            #expect(try await letters.depth(of: Self.queue) == 0)
            #expect(try await letters.administrator.get(Self.queue.name) == nil)
        }
    }

    @Test func `a letter over the broker's delivery limit is replayed under its original routing key`() async throws {
        try await withDeadLetters { letters in
            let event = AMQPMessage(
                exchange: ExchangeName.events.name, routingKey: "family-portal.chat.written",
                properties: AMQPProperties(messageID: "7"), body: [1])
            #expect(try await letters.administrator.publish(event) == .confirmed)
            // A message whose consumer crashes on every delivery.
            for _ in 0...Topology.deliveryLimit {
                _ = try await letters.transactionChannel.take(from: Self.queue.name)
                await letters.transactionChannel.close()
            }
            try await eventually("the broker gives up") { try await letters.depth(of: Self.queue) == 1 }
            let lines = try await Self.look(letters)
            #expect(lines.count == 1)
            #expect(lines.first?.contains("  delivery_limit  family-portal.chat.written  -      7 ") == true)
            try await letters.forEachLetter(Self.queue, most: 100) { _ in .replay }
            let replayed = try #require(try await letters.administrator.get(Self.queue.name))
            #expect(
                Self.ownHeaders(replayed) == [
                    HeaderName.exchange: "events", HeaderName.routingKey: "family-portal.chat.written",
                ])
        }
    }

    /// RabbitMQ before version 4 does not check the keys in `CC`.
    @Test func `a letter written by another stage is marked and never replayed`() async throws {
        try await withDeadLetters { letters in
            let forged = AMQPMessage(
                exchange: ExchangeName.dead.name, routingKey: WorkQueue.feedbackOutcomes.name,
                properties: AMQPProperties(
                    messageID: "f",
                    headers: [
                        "CC": .array([.text(Self.queue.name)]), HeaderName.exchange: "events",
                        HeaderName.routingKey: "bank.paid", HeaderName.reason: "not-json",
                    ]), body: [1])
            #expect(try await letters.administrator.publish(forged) == .confirmed)
            try await Self.bury("1", reason: "not-json", letters)
            // `show` republishes the letter under the queue's own name and keeps its mark.
            for _ in 0..<2 {
                let lines = try await Self.look(letters)
                #expect(lines.count == 2)
                #expect(lines.first?.contains("written by another stage, as feedback.outcomes") == true)
                #expect(lines.last?.contains("another stage") == false)
            }
            #expect(try await letters.forEachLetter(Self.queue, most: 100) { _ in .replay } == 1)
            #expect(try await letters.depth(of: Self.queue) == 1)
            #expect(try await letters.administrator.get(Self.queue.name)?.properties.messageID == "1")
            #expect(try await letters.administrator.get(Self.queue.name) == nil)
            #expect(try await letters.forEachLetter(Self.queue, most: 100) { _ in .drop } == 0)
            #expect(try await letters.depth(of: Self.queue) == 0)
        }
    }

    @Test func `a letter that reaches no queue stays a dead letter`() async throws {
        try await withDeadLetters { letters in
            try await Self.bury("1", reason: "not-json", letters)
            try await letters.administrator.deleteQueue(Self.queue.name)
            let refusal = await #expect(throws: CommandError.self) {
                try await letters.forEachLetter(Self.queue, most: 100) { _ in .replay }
            }
            #expect(refusal?.description.contains("pushctl topology apply") == true)
            await letters.transactionChannel.close()
            try await eventually("it is back") { try await letters.depth(of: Self.queue) == 1 }
        }
    }
}
