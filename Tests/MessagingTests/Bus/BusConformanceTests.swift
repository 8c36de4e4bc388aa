import AMQP
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import Messaging

/// The behaviour that a stage relies on, tested on RabbitMQ and on the in-memory bus.
@Suite(.serialized, .timeLimit(.minutes(2))) struct BusConformanceTests {
    @Test(arguments: BusKind.available)
    func `messages are delivered with all properties, in order`(kind: BusKind) async throws {
        try await kind.with { bus in
            let properties = AMQPProperties(
                contentType: "application/octet-stream", contentEncoding: "gzip", messageID: "m", correlationID: "c",
                type: "t", appID: "a", persistent: true, timestamp: 1_700_000_000,
                headers: [
                    "text": "é", "int": 7, "flag": true, "bytes": .bytes([0, 255]), "time": .timestamp(1_700_000_000),
                    "table": .table(["list": .array([1, "two", .void])]),
                ])
            let messages = (0..<50).map { number in
                AMQPMessage(
                    exchange: "events", routingKey: "demo.a.b", properties: properties, body: [0, UInt8(number), 255])
            }
            let answers = try await bus.publish(messages)
            #expect(answers == Array(repeating: .confirmed, count: 50))
            let consumer = DeliveryCollector(bus, prefetch: 100)
            let taken = try await consumer.wait(for: 50)
            #expect(taken.map(\.body) == messages.map(\.body))
            let first = try #require(taken.first)
            #expect(first.properties == properties)
            #expect((first.exchange, first.routingKey) == ("events", "demo.a.b"))
            #expect(!first.redelivered)
            await consumer.cancel()
        }
    }

    @Test(arguments: BusKind.available)
    func `each message has its own answer, in order`(kind: BusKind) async throws {
        try await kind.with { bus in
            let answers = try await bus.publish([
                .event("a"), AMQPMessage(exchange: "pushes", routingKey: "nowhere", body: []), .event("b"),
            ])
            #expect(answers.map(\.kind) == ["confirmed", "returned 312", "confirmed"])
            let homeless = try await bus.publish([AMQPMessage(exchange: "no-such", routingKey: "x", body: [])])
            #expect(homeless.map(\.kind) == ["returned 404"])
            try await eventually { try await bus.ready(in: queue.name) == 2 }
        }
    }

    @Test(arguments: BusKind.available)
    func `the prefetch limits deliveries, and an acknowledgement allows the next`(kind: BusKind) async throws {
        try await kind.with { bus in
            _ = try await bus.publish((1...5).map { .event("\($0)") })
            let consumer = DeliveryCollector(bus, prefetch: 2)
            let first = try await consumer.wait(for: 2)
            try await eventually { try await bus.ready(in: queue.name) == 3 }
            #expect(consumer.taken.count == 2)
            bus.acknowledge([first[0].tag])
            #expect(try await consumer.wait(for: 3).map(\.text) == ["1", "2", "3"])
            await consumer.cancel()
        }
    }

    @Test(arguments: BusKind.available)
    func `a requeued message is redelivered with a delivery count`(kind: BusKind) async throws {
        try await kind.with { bus in
            _ = try await bus.publish([.event("a")])
            let consumer = DeliveryCollector(bus, prefetch: 10)
            let first = try await consumer.wait(for: 1)
            bus.requeue(first.map(\.tag))
            let second = try await consumer.wait(for: 2)[1]
            #expect(second.redelivered)
            #expect(second.text == "a")
            #expect(second.properties.headers["x-delivery-count"] == 1)
            bus.acknowledge([second.tag])
            await consumer.cancel()
        }
    }

    @Test(arguments: BusKind.available)
    func `after a cancel nothing is delivered, and earlier deliveries can be settled`(kind: BusKind) async throws {
        try await kind.with { bus in
            _ = try await bus.publish((1...3).map { .event("\($0)") })
            let consumer = DeliveryCollector(bus, prefetch: 2)
            let lent = try await consumer.wait(for: 2)
            await consumer.cancel()
            try await consumer.end()
            bus.acknowledge([lent[0].tag])
            bus.requeue([lent[1].tag])
            try await eventually { try await bus.ready(in: queue.name) == 2 }
            let texts = [try await bus.take(from: queue.name)?.text, try await bus.take(from: queue.name)?.text]
            #expect(Set(texts) == ["2", "3"])
        }
    }

    @Test(arguments: BusKind.available)
    func `a message returns from a retry level to its queue every time`(kind: BusKind) async throws {
        try await kind.with { bus in
            let handler = ScriptedHandler(each: {
                $0.inbound.attempt < 4 ? Verdict(.retry(after: .seconds(1), .test)) : .done
            })
            try await withStage(bus, handler) { _ in
                _ = try await bus.publish([.event("a")])
                try await eventually {
                    try await bus.passRetryTime()
                    return handler.handled.count == 4
                }
            }
            #expect(handler.handled.map(\.inbound.attempt) == [1, 2, 3, 4])
            #expect(handler.handled.allSatisfy { $0.inbound.routingKey == "demo.happened" })
            #expect(try await bus.ready(in: queue.name) == 0)
        }
    }

    @Test(arguments: BusKind.available)
    func `poison and dead-lettered messages are in the dead-letter queue of their queue`(kind: BusKind) async throws {
        try await kind.with { bus in
            let handler = ScriptedHandler(each: { $0.message == "bad" ? Verdict(.deadLetter(.test)) : .done })
            try await withStage(bus, handler) { _ in
                _ = try await bus.publish([.event("a"), .event("poison"), .event("bad"), .event("b")])
                try await eventually { try await bus.ready(in: queue.deadName) == 2 }
                try await eventually { handler.handled.count == 3 }
            }
            let dead = [try await bus.take(from: queue.deadName), try await bus.take(from: queue.deadName)]
            let reasons = dead.map { $0?.properties.headers[HeaderName.reason]?.text }
            #expect(Set(reasons) == ["not-json", "test-reason"])
            #expect(try await bus.ready(in: queue.name) == 0)
        }
    }

    @Test(arguments: BusKind.available)
    func `connection losses while a stage runs lose no message`(kind: BusKind) async throws {
        try await kind.with { bus in
            let handler = ScriptedHandler { $0.map { .done([.notification($0.message)]) } }
            let all = Set((1...600).map(String.init))
            try await withStage(bus, handler, policy: .test(prefetch: 50)) { _ in
                for round in 0..<3 {
                    _ = try await bus.publish((1...200).map { .event("\(round * 200 + $0)") })
                    try await bus.breakConnections()
                }
                try await eventually(within: .seconds(30)) { Set(handler.handled.map(\.message)) == all }
            }
            let consumer = DeliveryCollector(
                bus, queue: WorkQueue.registryNotifications(.interactive).name, prefetch: 5000)
            try await eventually { Set(consumer.texts) == all }
            await consumer.cancel()
            #expect(try await bus.ready(in: queue.name) == 0)
        }
    }

    @Test(arguments: BusKind.available)
    func `after ten connection losses during an outage each message is handled once`(kind: BusKind) async throws {
        try await kind.with { bus in
            let dependency = Dependency(isUnavailable: false)
            let succeeded = Mutex<[String]>([])
            let handler = ScriptedHandler { batch in
                try dependency.use()
                succeeded.withLock { $0 += batch.map(\.message) }
                return batch.map { _ in .done }
            }
            try await withStage(bus, handler, policy: .test(prefetch: 50)) { stage in
                _ = try await bus.publish([.event("first")])
                try await eventually { succeeded.withLock { $0 } == ["first"] }
                dependency.fail()
                _ = try await bus.publish((1...40).map { .event("\($0)") })
                try await eventually { stage.status.first?.state == .holding("the dependency") }
                for _ in 1...10 {
                    let before = handler.handled.last?.inbound.delivery.tag.generation
                    try await bus.breakConnections()
                    // A batch of the next connection was tried.
                    try await eventually(within: .seconds(30)) {
                        handler.handled.last?.inbound.delivery.tag.generation != before
                    }
                }
                // The batches of older connections have ended.
                let newest = handler.handled.last?.inbound.delivery.tag.generation
                try await eventually {
                    handler.handled.suffix(20).allSatisfy { $0.inbound.delivery.tag.generation == newest }
                }
                dependency.recover()
                try await eventually(within: .seconds(30)) { Set(succeeded.withLock { $0 }).count == 41 }
                try await eventually { try await bus.ready(in: queue.name) == 0 }
            }
            #expect(succeeded.withLock { $0 }.count == 41)
        }
    }

    @Test(arguments: BusKind.available)
    func `the broker dead-letters a rejected delivery`(kind: BusKind) async throws {
        try await kind.with { bus in
            _ = try await bus.publish([.event("a")])
            let consumer = DeliveryCollector(bus, prefetch: 1)
            let taken = try await consumer.wait(for: 1)
            bus.reject(taken.map(\.tag))
            try await eventually { try await bus.ready(in: queue.deadName) == 1 }
            let dead = try #require(try await bus.take(from: queue.deadName))
            #expect(dead.body == Array("a".utf8))
            await consumer.cancel()
        }
    }

    @Test(arguments: BusKind.available)
    func `twenty-one drains dead-letter no message`(kind: BusKind) async throws {
        try await kind.with { bus in
            _ = try await bus.publish((1...20).map { .event("\($0)") })
            for _ in 1...21 {
                let stuck = CancellableGate()
                let handler = ScriptedHandler { batch in
                    try await stuck.pass()
                    return batch.map { _ in .done }
                }
                try await withStage(bus, handler, policy: .test(prefetch: 500, drainDeadline: .milliseconds(1))) { _ in
                    try await eventually(within: .seconds(30)) {
                        try await bus.passRetryTime()
                        return stuck.waiting > 0
                    }
                }
            }
            let handler = ScriptedHandler()
            try await withStage(bus, handler) { _ in
                try await eventually(within: .seconds(30)) {
                    try await bus.passRetryTime()
                    return Set(handler.handled.map(\.message)).count == 20
                }
            }
            #expect(try await bus.ready(in: queue.deadName) == 0)
        }
    }

    @Test(arguments: BusKind.available)
    func `drains under load cause no loss and no duplicate`(kind: BusKind) async throws {
        try await kind.with { bus in
            let handler = ScriptedHandler { $0.map { .done([.notification($0.message)]) } }
            for round in 0..<3 {
                try await withStage(bus, handler, policy: .test(prefetch: 50)) { _ in
                    _ = try await bus.publish((1...200).map { .event("\(round * 200 + $0)") })
                }
            }
            try await withStage(bus, handler) { _ in
                try await eventually(within: .seconds(90)) { Set(handler.handled.map(\.message)).count == 600 }
            }
            let consumer = DeliveryCollector(
                bus, queue: WorkQueue.registryNotifications(.interactive).name, prefetch: 5000)
            let all = Set((1...600).map(String.init))
            try await eventually { Set(consumer.texts) == all }
            #expect(consumer.taken.count == 600)
            await consumer.cancel()
        }
    }
}

extension AMQPConfirmation {
    fileprivate var kind: String {
        switch self {
        case .confirmed: "confirmed"
        case .nacked: "nacked"
        case .returned(let code, _): "returned \(code)"
        }
    }
}
