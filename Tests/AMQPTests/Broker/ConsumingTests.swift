import Foundation
import Testing
import TestSupport

@testable import AMQP

@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(2)))
struct ConsumingTests {
    /// Takes deliveries until there are `count`.
    private static func take(_ count: Int, from subscription: AMQPSubscription) async -> [AMQPDelivery] {
        var taken: [AMQPDelivery] = []
        for await burst in subscription.deliveries {
            taken += burst
            if taken.count >= count { break }
        }
        return taken
    }

    private static func fill(_ queue: String, _ texts: some Sequence<Int>) async throws {
        try await RealBroker.withPublisher { publisher in
            let messages = texts.map { AMQPMessage.to(queue, "\($0)") }
            let answer = try await publisher.publish(messages)
            #expect(answer.allSatisfy { $0 == .confirmed })
        }
    }

    @Test func `deliveries keep their order and the prefetch`() async throws {
        try await RealBroker.withQueue { queue in
            try await Self.fill(queue, 0..<1000)
            try await RealBroker.withConsumer { consumer in
                let subscription = consumer.subscribe(queue: queue, prefetch: 100)
                var texts: [String] = []
                for await burst in subscription.deliveries {
                    #expect(burst.count <= 100)
                    texts += burst.map(\.text)
                    consumer.acknowledge(burst.map(\.tag))
                    if texts.count == 1000 { break }
                }
                #expect(texts == (0..<1000).map(String.init))
                await subscription.cancel()
            }
            try await eventually { try await RealBroker.isEmpty(queue) }
        }
    }

    @Test(arguments: [false, true])
    func `unsettled header and body bytes limit the deliveries`(inHeaders: Bool) async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withPublisher { publisher in
                let weight = String(repeating: "x", count: 100_000)
                let properties = AMQPProperties(headers: inHeaders ? ["weight": .text(weight)] : [:])
                let messages = (0..<40).map { number in
                    AMQPMessage(
                        exchange: "", routingKey: queue, properties: properties,
                        body: [UInt8(number)] + (inHeaders ? [] : Array(weight.utf8)))
                }
                let answers = try await publisher.publish(messages)
                #expect(answers.allSatisfy { $0 == .confirmed })
            }
            let consumer = AMQPConsumer(
                configuration: try RealBroker.configuration(), maximumBytes: 250_000, logger: RealBroker.logger)
            await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await consumer.run() }
                defer { group.cancelAll() }
                let subscription = consumer.subscribe(queue: queue, prefetch: 40)
                var (unsettled, most): ([AMQPDelivery], Int) = ([], 0)
                var seen: Set<UInt8> = []
                for await burst in subscription.deliveries {
                    unsettled += burst
                    most = max(most, unsettled.count)
                    seen.formUnion(burst.compactMap(\.body.first))
                    if seen.count == 40 { break }
                    if unsettled.count >= 3 { consumer.acknowledge([unsettled.removeFirst().tag]) }
                }
                // Three exceed the limit; on a slow machine heartbeat frames may let two more through.
                #expect(most <= 5)
                consumer.acknowledge(unsettled.map(\.tag))
                await subscription.cancel()
            }
            try await eventually { try await RealBroker.isEmpty(queue) }
        }
    }

    @Test func `acknowledging in any order causes no loss and no redelivery`() async throws {
        try await RealBroker.withQueue { queue in
            try await Self.fill(queue, 0..<600)
            try await RealBroker.withConsumer { consumer in
                let subscription = consumer.subscribe(queue: queue, prefetch: 50)
                var random = SplitMix(seed: 1)
                var held: [AMQPDelivery] = []
                var seen: Set<String> = []
                for await burst in subscription.deliveries {
                    held += burst
                    seen.formUnion(burst.map(\.text))
                    held.shuffle(using: &random)
                    let isLast = seen.count == 600
                    let done = held.prefix(isLast ? held.count : max(1, held.count / 2))
                    consumer.acknowledge(done.map(\.tag))
                    held.removeFirst(done.count)
                    if isLast { break }
                }
                await subscription.cancel()
                #expect(consumer.staleSettlements == 0)
            }
            try await eventually { try await RealBroker.isEmpty(queue) }
        }
    }

    @Test func `a slow delivery does not block the prefetch window`() async throws {
        try await RealBroker.withQueue { queue in
            try await Self.fill(queue, 0..<100)
            try await RealBroker.withConsumer { consumer in
                let subscription = consumer.subscribe(queue: queue, prefetch: 5)
                var slow: AMQPDeliveryTag?
                var count = 0
                for await burst in subscription.deliveries {
                    count += burst.count
                    if slow == nil { slow = burst[0].tag }
                    consumer.acknowledge(burst.map(\.tag).filter { $0 != slow })
                    if count >= 20 { break }
                }
                #expect(count >= 20)
            }
        }
    }

    @Test func `a consumer with many unsettled deliveries still receives new ones`() async throws {
        try await RealBroker.withQueue { queue in
            try await Self.fill(queue, 0..<100)
            try await RealBroker.withConsumer { consumer in
                let subscription = consumer.subscribe(queue: queue, prefetch: 300)
                var held = await Self.take(100, from: subscription)
                // One at a time, so that the connection polls in between. If only its own deadline woke it, each would
                // take seconds.
                let begin = ContinuousClock.now
                for number in 100..<110 {
                    try await Self.fill(queue, number...number)
                    held += await Self.take(1, from: subscription)
                }
                #expect(begin.duration(to: .now) < .seconds(20))
                #expect(held.map(\.text) == (0..<110).map(String.init))
                consumer.acknowledge(held.map(\.tag))
                await subscription.cancel()
            }
            try await eventually { try await RealBroker.isEmpty(queue) }
        }
    }

    @Test func `a requeued message is redelivered`() async throws {
        try await RealBroker.withQueue { queue in
            try await Self.fill(queue, 0..<3)
            try await RealBroker.withConsumer { consumer in
                let subscription = consumer.subscribe(queue: queue, prefetch: 10)
                let first = await Self.take(3, from: subscription)
                #expect(first.allSatisfy { !$0.redelivered })
                consumer.acknowledge([first[1].tag])
                consumer.requeue([first[0].tag, first[2].tag])
                let second = await Self.take(2, from: subscription)
                #expect(Set(second.map(\.text)) == ["0", "2"])
                #expect(second.allSatisfy { $0.redelivered })
                consumer.acknowledge(second.map(\.tag))
                await subscription.cancel()
            }
            try await eventually { try await RealBroker.isEmpty(queue) }
        }
    }

    @Test func `cancelling requeues buffered deliveries and keeps taken ones settleable`() async throws {
        try await RealBroker.withQueue { queue in
            try await Self.fill(queue, 0..<10)
            try await RealBroker.withConsumer { consumer in
                let subscription = consumer.subscribe(queue: queue, prefetch: 1)
                let taken = await Self.take(1, from: subscription)
                let wide = consumer.subscribe(queue: queue, prefetch: 5)
                try await eventually { wide.state == .active }
                await wide.cancel()
                await subscription.cancel()
                #expect(subscription.state == .cancelled)
                for await _ in subscription.deliveries { Issue.record("a delivery after the end") }
                consumer.acknowledge(taken.map(\.tag))
                try await eventually { try await RealBroker.status(queue)?.messages == 9 }
                try await eventually { try await RealBroker.status(queue)?.consumers == 0 }
            }
        }
    }

    @Test func `a deleted queue is consumed again after it is redeclared`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withConsumer { consumer in
                let subscription = consumer.subscribe(queue: queue, prefetch: 10)
                try await eventually { subscription.state == .active }
                try await RealBroker.administer { try await $0.deleteQueue(queue) }
                try await eventually {
                    guard case .waiting(_, let error) = subscription.state else { return false }
                    return error?.code == .channelClosed(replyCode: 404)
                }
                #expect(Array(consumer.waitingQueues.keys) == [queue])
                // The 404 closed the channel; the consumer reconnects for its other subscriptions.
                try await eventually { consumer.state == .connected }
                try await RealBroker.administer { try await $0.declareQueue(name: queue) }
                try await eventually { subscription.state == .active }
                try await Self.fill(queue, 0..<1)
                #expect(await Self.take(1, from: subscription).map(\.text) == ["0"])
            }
        }
    }

    @Test func `a missing queue does not affect other subscriptions`() async throws {
        try await RealBroker.withQueue { queue in
            try await RealBroker.withConsumer { consumer in
                let missing = consumer.subscribe(queue: RealBroker.name("missing"), prefetch: 10)
                let there = consumer.subscribe(queue: queue, prefetch: 10)
                try await eventually { there.state == .active }
                try await Self.fill(queue, 0..<5)
                let taken = await Self.take(5, from: there)
                #expect(taken.allSatisfy { $0.tag.generation == 1 && !$0.redelivered })
                consumer.acknowledge(taken.map(\.tag))
                #expect(missing.state != .active)
                await missing.cancel()
            }
        }
    }

    /// librabbitmq 0.11 decodes headers recursively without a limit.
    @Test(arguments: [64, 5000, 20_000]) func `headers nested thousands of levels deep are decoded`(levels: Int)
        async throws
    {
        try await RealBroker.withQueue { queue in
            try await RawPublisher.publish(queue: queue, headerLevels: levels)
            try await Self.fill(queue, 0..<1)
            try await RealBroker.withConsumer { consumer in
                let subscription = consumer.subscribe(queue: queue, prefetch: 10)
                let taken = await Self.take(2, from: subscription)
                #expect(taken.count == 2)
                #expect(taken.first?.properties.headers.count == 1)
                consumer.acknowledge(taken.map(\.tag))
                await subscription.cancel()
            }
        }
    }

    @Test func `two queues on one channel receive their own deliveries`() async throws {
        try await RealBroker.withQueue { one in
            try await RealBroker.withQueue { other in
                try await Self.fill(one, 0..<50)
                try await Self.fill(other, 100..<150)
                try await RealBroker.withConsumer { consumer in
                    let first = consumer.subscribe(queue: one, prefetch: 50)
                    let second = consumer.subscribe(queue: other, prefetch: 50)
                    let (a, b) = (await Self.take(50, from: first), await Self.take(50, from: second))
                    #expect(a.map(\.text) == (0..<50).map(String.init))
                    #expect(b.map(\.text) == (100..<150).map(String.init))
                    #expect(Set(b.map(\.queue)) == [other])
                    consumer.acknowledge(b.map(\.tag))
                    consumer.acknowledge(a.map(\.tag))
                }
            }
        }
    }
}
