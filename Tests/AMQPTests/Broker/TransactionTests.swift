import Testing
import TestSupport

@testable import AMQP

/// Publishes and an acknowledgement in one transaction.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct TransactionTests {
    private static func message(_ queue: String, _ text: String) -> AMQPMessage {
        var message = AMQPMessage.to(queue, text)
        message.properties.messageID = text
        return message
    }

    private static func transactionChannel(through proxy: FaultProxy? = nil) throws -> AMQPTransactionChannel {
        try AMQPTransactionChannel(try RealBroker.configuration(through: proxy), logger: RealBroker.logger)
    }

    /// Two queues: one to consume, one to publish to.
    private static func withQueues(_ body: (String, String) async throws -> Void) async throws {
        try await RealBroker.withQueue { source in
            try await RealBroker.withQueue { sink in try await body(source, sink) }
        }
    }

    private static func depth(_ queue: String) async throws -> Int {
        try await RealBroker.administer { try await $0.queueStatus(queue)?.messages } ?? -1
    }

    private static func publish(_ message: AMQPMessage) async throws {
        #expect(try await RealBroker.administer { try await $0.publish(message) } == .confirmed)
    }

    @Test func `a commit applies publishes and settlement together`() async throws {
        try await Self.withQueues { source, sink in
            let transactionChannel = try Self.transactionChannel()
            #expect(try await transactionChannel.take(from: source) == nil)
            try await Self.publish(Self.message(source, "0"))
            for number in 1...20 {
                let delivery = try #require(try await transactionChannel.take(from: source))
                #expect(delivery.text == "\(number - 1)" && !delivery.redelivered)
                let messages = (0..<3).map { Self.message(sink, "\(number).\($0)") }
                let left = try await transactionChannel.commit(
                    messages + [Self.message(source, "\(number)")], settling: delivery)
                #expect(left == [])
            }
            #expect(try await transactionChannel.depth(of: sink) == 60)
            #expect(try await transactionChannel.depth(of: "\(sink).missing") == nil)
            await transactionChannel.close()
            #expect(try await Self.depth(source) == 1)
        }
    }

    @Test func `without a commit nothing is published and the input is redelivered`() async throws {
        try await Self.withQueues { source, sink in
            try await RealBroker.withProxy { proxy in
                try await Self.publish(Self.message(source, "cause"))
                let transactionChannel = try Self.transactionChannel(through: proxy)
                let delivery = try #require(try await transactionChannel.take(from: source))
                proxy.cut()
                await #expect(throws: AMQPError.self) {
                    _ = try await transactionChannel.commit([Self.message(sink, "effect")], settling: delivery)
                }
                try await eventually("the input is requeued", within: .seconds(60)) {
                    try await Self.depth(source) == 1
                }
                #expect(try await Self.depth(sink) == 0)
                // A delivery of an earlier connection cannot be settled on this one.
                let again = try #require(try await transactionChannel.take(from: source))
                #expect(again.redelivered)
                await #expect(throws: AMQPError.self) {
                    _ = try await transactionChannel.commit([], settling: delivery)
                }
                #expect(try await transactionChannel.commit([Self.message(sink, "effect")], settling: again) == [])
                await transactionChannel.close()
                #expect(try await Self.depth(source) == 0)
                #expect(try await Self.depth(sink) == 1)
            }
        }
    }

    @Test func `a commit returns the ids of unroutable messages`() async throws {
        try await Self.withQueues { source, sink in
            try await Self.publish(Self.message(source, "cause"))
            let transactionChannel = try Self.transactionChannel()
            let delivery = try #require(try await transactionChannel.take(from: source))
            let lost = [Self.message("\(sink).missing", "lost"), Self.message("\(sink).missing", "too")]
            let left = try await transactionChannel.commit(
                [Self.message(sink, "kept"), lost[0], Self.message(sink, "as well"), lost[1]], settling: delivery)
            #expect(left == ["lost", "too"])
            #expect(try await transactionChannel.depth(of: sink) == 2)
            #expect(try await transactionChannel.take(from: source) == nil)
            await transactionChannel.close()
        }
    }
}
