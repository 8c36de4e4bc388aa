import Foundation
import Testing
import TestSupport

@testable import AMQP

@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct StreamTests {
    private static func withStream(_ count: Int, _ body: (String) async throws -> Void) async throws {
        try await RealBroker.withQueue(["x-queue-type": "stream"]) { stream in
            try await RealBroker.withPublisher { publisher in
                let answer = try await publisher.publish((0..<count).map { AMQPMessage.to(stream, "\($0)") })
                #expect(answer.allSatisfy { $0 == .confirmed })
            }
            try await body(stream)
        }
    }

    private static func take(_ count: Int, _ subscription: AMQPSubscription, _ consumer: AMQPConsumer) async -> [String]
    {
        var texts: [String] = []
        for await burst in subscription.deliveries {
            texts += burst.map(\.text)
            consumer.acknowledge(burst.map(\.tag))
            if texts.count >= count { break }
        }
        return texts
    }

    @Test func `each attachment reads a stream from the requested time`()
        async throws
    {
        try await Self.withStream(500) { stream in
            try await RealBroker.withConsumer { consumer in
                let weekAgo = Int64(Date().timeIntervalSince1970) - 7 * 86_400
                for _ in 0..<2 {
                    let subscription = consumer.read(stream: stream, prefetch: 20) { .since(weekAgo) }
                    #expect(await Self.take(500, subscription, consumer) == (0..<500).map(String.init))
                    await subscription.cancel()
                }
                let later = consumer.read(stream: stream, prefetch: 20) { .since(weekAgo + 14 * 86_400) }
                try await eventually("the consumer is attached") { later.state == .active }
                try await RealBroker.withPublisher { publisher in
                    _ = try await publisher.publish([.to(stream, "new")])
                }
                #expect(await Self.take(1, later, consumer) == ["new"])
                await later.cancel()
            }
        }
    }

    @Test func `cancelling a stream consumer with buffered deliveries keeps the connection open`() async throws {
        try await Self.withStream(500) { stream in
            try await RealBroker.withConsumer { consumer in
                for _ in 0..<5 {
                    let subscription = consumer.read(stream: stream, prefetch: 200) { .first }
                    try await eventually("the consumer is attached") { subscription.state == .active }
                    await subscription.cancel()
                }
                try await RealBroker.withQueue { queue in
                    try await RealBroker.withPublisher { publisher in
                        _ = try await publisher.publish([.to(queue, "after")])
                    }
                    let subscription = consumer.subscribe(queue: queue, prefetch: 1)
                    for await burst in subscription.deliveries {
                        // Still the first connection: a requeue to a stream would have closed it.
                        #expect(burst.map(\.tag.generation) == [1])
                        consumer.acknowledge(burst.map(\.tag))
                        break
                    }
                    await subscription.cancel()
                }
            }
        }
    }
}
