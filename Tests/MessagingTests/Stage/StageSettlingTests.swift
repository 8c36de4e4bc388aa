import AMQP
import Logging
import Messaging
import PushProtocol
import Testing
import TestSupport

/// Settlement by verdict.
@Suite(.timeLimit(.minutes(1))) struct StageSettlingTests {
    private let bus = InMemoryBus(apps: [demo])
    private let next = "token-registry.notifications.interactive"

    @Test func `a done message is acknowledged and its outbound is published`() async throws {
        let handler = ScriptedHandler { $0.map { .done([.notification($0.message)]) } }
        try await withStage(bus, handler) { _ in
            for number in 1...25 { bus.event("\(number)") }
            try await eventually { bus.isSettled(queue.name) }
        }
        #expect(Set(bus.texts(in: next)) == Set((1...25).map(String.init)))
        let sent = try #require(bus.messages(in: next).first?.properties)
        #expect(sent.persistent)
        #expect(sent.appID == "rules")
        #expect(sent.headers[HeaderName.traceparent] == "00-1-2-01")
    }

    @Test func `a message is settled after its outbound is confirmed`() async throws {
        bus.holdConfirms(true)
        let handler = ScriptedHandler { $0.map { .done([.notification($0.message)]) } }
        try await withStage(bus, handler) { _ in
            bus.event("a")
            try await eventually { bus.texts(in: next) == ["a"] }
            #expect(bus.unsettled(in: queue.name) == 1)
            bus.holdConfirms(false)
            try await eventually { bus.isSettled(queue.name) }
        }
    }

    @Test func `a nacked outbound is published again before its input is settled`() async throws {
        bus.answer(publishesTo: .notifications, with: [.nacked, .nacked, .nacked])
        let handler = ScriptedHandler { $0.map { .done([.notification($0.message)]) } }
        try await withStage(bus, handler) { _ in
            bus.event("a")
            try await eventually { bus.isSettled(queue.name) }
        }
        #expect(bus.texts(in: next) == ["a"])
        #expect(handler.batches == [["a"]])
    }

    @Test func `without unroutable rounds an unroutable outbound is published until it is routed`()
        async throws
    {
        let log = CapturingLogger()
        let way = Topology.Binding(exchange: "notifications", queue: next, routingKey: "interactive.#")
        bus.unbind(way)
        let handler = ScriptedHandler { $0.map { .done([.notification($0.message)]) } }
        try await withStage(bus, handler, policy: .test(unroutableRounds: nil), logger: log.logger) { _ in
            bus.event("a")
            let line = try await eventuallySome { log.lines.first { $0.level == .error } }
            #expect(line.metadata["exchange"] == "notifications")
            #expect(line.metadata["routing_key"] == "interactive.demo")
            #expect(bus.unsettled(in: queue.name) == 1)
            bus.bind(way)
            try await eventually { bus.isSettled(queue.name) }
        }
        #expect(bus.texts(in: next) == ["a"])
    }

    @Test func `an app without topology does not block others and loses nothing`() async throws {
        let log = CapturingLogger()
        let way = Topology.Binding(exchange: "notifications", queue: next, routingKey: "late")
        let handler = ScriptedHandler { batch in
            batch.map { delivery in
                let key = delivery.message == "other" ? "interactive.demo" : "late"
                return .done([.notification(delivery.message, routingKey: key)])
            }
        }
        let policy = StagePolicy.test(batchSize: 1, prefetch: 4, concurrentBatches: 2)
        try await withStage(bus, handler, policy: policy, logger: log.logger) { _ in
            for number in 1...10 { bus.event("\(number)") }
            bus.event("other")
            try await eventually { bus.isSettled(queue.name) }
            #expect(bus.texts(in: next) == ["other"])
            #expect(bus.messages(in: "retry.5s").count == 10)
            let line = try #require(log.lines.first { $0.metadata["reason"] == "outbound-unroutable" })
            #expect(line.level == .error)
            #expect(line.metadata["detail"]?.description.contains("routing key late") == true)
            // More often than the attempt limit.
            for _ in 1...20 {
                bus.expireRetries()
                try await eventually { bus.isSettled(queue.name) && bus.messages(in: "retry.5s").count == 10 }
            }
            bus.bind(way)
            bus.expireRetries()
            try await eventually { bus.isSettled(queue.name) && bus.texts(in: next).count == 11 }
        }
        #expect(handler.handled.allSatisfy { $0.inbound.attempt == 1 })
        #expect(bus.messages(in: queue.deadName).isEmpty)
    }

    @Test func `a shared outbound is published once, and all its inputs wait for it`() async throws {
        let handler = ScriptedHandler { batch in
            let shared = Outbound.notification("shared", routingKey: "late")
            return batch.map { .done($0.message == "b" ? [.notification("own"), shared] : [shared]) }
        }
        try await withStage(bus, handler, policy: .test(batchSize: 3, unroutableRounds: nil)) { _ in
            // The first message of a stage is handled alone.
            bus.event("first")
            try await eventually { handler.handled.count == 1 }
            for text in ["a", "b", "c"] { bus.event(text) }
            try await eventually { bus.texts(in: next) == ["own"] }
            #expect(bus.unsettled(in: queue.name) == 4)
            bus.bind(Topology.Binding(exchange: "notifications", queue: next, routingKey: "late"))
            try await eventually { bus.isSettled(queue.name) }
        }
        #expect(bus.texts(in: next).sorted() == ["own", "shared", "shared"])
    }

    @Test func `a message with an unroutable outbound does not block its batch`() async throws {
        let handler = ScriptedHandler { batch in
            batch.map {
                $0.message == "stuck"
                    ? .done([
                        Outbound(
                            exchange: .pushes, routingKey: "nowhere", messageID: "m", type: "t", correlationID: "c",
                            body: [])
                    ]) : .done
            }
        }
        try await withStage(bus, handler, policy: .test(unroutableRounds: nil, drainDeadline: .milliseconds(20))) { _ in
            for text in ["a", "stuck", "b"] { bus.event(text) }
            try await eventually { handler.handled.count == 3 && bus.unsettled(in: queue.name) == 1 }
        }
        #expect(bus.texts(in: queue.name) == ["stuck"])
    }

    @Test func `a retry returns unchanged from its level as the next attempt`() async throws {
        let handler = ScriptedHandler(each: {
            $0.inbound.attempt < 3 ? Verdict(.retry(after: .seconds(20), .test)) : .done
        })
        let properties = AMQPProperties(
            contentType: "application/octet-stream", messageID: "m-1", persistent: false,
            headers: ["cloudEvents:id": "e-1", "cloudEvents:specversion": "1.0"])
        try await withStage(bus, handler) { _ in
            bus.event("a", properties: properties)
            for attempt in 1...2 {
                try await eventually { bus.messages(in: "retry.30s").count == 1 && bus.isSettled(queue.name) }
                #expect(
                    bus.messages(in: "retry.30s")[0].properties.headers[HeaderName.attempt]?.int == Int64(attempt + 1))
                bus.expireRetries(.seconds30)
            }
            try await eventually { handler.handled.count == 3 && bus.isSettled(queue.name) }
        }
        #expect(handler.handled.map(\.inbound.attempt) == [1, 2, 3])
        let last = try #require(handler.handled.last?.inbound)
        #expect(last.exchange == "events")
        #expect(last.routingKey == "demo.happened")
        #expect(last.contentType == "application/octet-stream")
        #expect(last.messageID == "m-1")
        #expect(last.headers["cloudEvents:id"] == "e-1")
        #expect(last.firstSeen == handler.handled[0].inbound.firstSeen)
    }

    @Test func `a retry with a remainder repeats only the remainder`() async throws {
        let handler = ScriptedHandler(each: {
            $0.inbound.attempt == 1
                ? Verdict(.retry(after: .seconds(1), .test), remainder: Array("rest".utf8)) : .done
        })
        try await withStage(bus, handler) { _ in
            bus.event("all")
            try await eventually { bus.texts(in: "retry.5s") == ["rest"] && bus.isSettled(queue.name) }
            bus.expireRetries()
            try await eventually { handler.batches == [["all"], ["rest"]] && bus.isSettled(queue.name) }
        }
    }

    @Test func `after the last attempt a message is dead-lettered`() async throws {
        let handler = ScriptedHandler(each: { _ in Verdict(.retry(after: .seconds(1), .test)) })
        try await withStage(bus, handler) { _ in
            bus.event("a")
            try await eventually {
                bus.expireRetries()
                return bus.texts(in: queue.deadName) == ["a"] && bus.isSettled(queue.name)
            }
        }
        #expect(handler.handled.map(\.inbound.attempt) == Array(1...8))
        let headers = bus.messages(in: queue.deadName)[0].properties.headers
        #expect(headers[HeaderName.reason]?.text == "attempts-exhausted")
        #expect(headers[HeaderName.detail]?.text?.contains("test-reason") == true)
    }

    @Test func `a dead letter has its reason and its origin`() async throws {
        let handler = ScriptedHandler(each: { _ in Verdict(.deadLetter(.test)) })
        try await withStage(bus, handler) { _ in
            bus.event("a", properties: AMQPProperties(expiration: "1"))
            try await eventually { bus.texts(in: queue.deadName) == ["a"] && bus.isSettled(queue.name) }
        }
        let headers = bus.messages(in: queue.deadName)[0].properties.headers
        #expect(headers[HeaderName.reason]?.text == "test-reason")
        #expect(headers[HeaderName.queue]?.text == "rules.events")
        #expect(headers[HeaderName.service]?.text == "rules")
        #expect(headers[HeaderName.routingKey]?.text == "demo.happened")
    }

    @Test func `a discarded message publishes nothing`() async throws {
        let handler = ScriptedHandler(each: { _ in Verdict(.discard(.test)) })
        try await withStage(bus, handler) { _ in
            bus.event("a")
            try await eventually { handler.handled.count == 1 && bus.isSettled(queue.name) }
        }
        #expect(bus.published.isEmpty)
    }

    @Test func `poison is dead-lettered alone`() async throws {
        let handler = ScriptedHandler()
        for text in ["a", "poison", "b"] { bus.event(text) }
        try await withStage(bus, handler) { _ in
            try await eventually { bus.isSettled(queue.name) }
        }
        #expect(handler.handled.map(\.message) == ["a", "b"])
        #expect(bus.texts(in: queue.deadName) == ["poison"])
        #expect(bus.messages(in: queue.deadName)[0].properties.headers[HeaderName.reason]?.text == "not-json")
    }
}
