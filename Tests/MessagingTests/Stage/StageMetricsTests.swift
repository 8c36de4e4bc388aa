import AMQP
import CoreMetrics
import MetricsTestKit
import PushProtocol
import Testing
import TestSupport

@testable import Messaging

/// The metrics that operators rely on, by their documented names.
@Suite(.timeLimit(.minutes(1))) struct StageMetricsTests {
    @Test func `every settled message is counted by disposition and reason`() async throws {
        let bus = InMemoryBus(apps: [demo])
        let metrics = TestMetrics()
        bus.answer(publishesTo: .notifications, with: [.nacked])
        let handler = ScriptedHandler(each: { delivery in
            switch delivery.message {
            case "done": .done([.notification("a")])
            case "retry": Verdict(.retry(after: .seconds(1), .test))
            case "dead": Verdict(.deadLetter(.test))
            default: Verdict(.discard(.test))
            }
        })
        try await withMetrics(metrics) {
            try await withStage(bus, handler) { _ in
                for text in ["done", "retry", "dead", "discard", "poison"] { bus.event(text) }
                try await eventually { bus.isSettled(queue.name) }
            }
        }
        func count(_ name: String, _ labels: (String, String)...) throws -> Int64 {
            try metrics.expectCounter(name, [("stage", "rules")] + labels).totalValue
        }
        let here = ("queue", "rules.events")
        #expect(try count(MetricName.consumed, here) == 5)
        #expect(try count(MetricName.settled, here, ("disposition", "done")) == 1)
        #expect(try count(MetricName.settled, here, ("disposition", "dead-letter")) == 2)
        #expect(try count(MetricName.retried, here, ("level", "5s"), ("reason", "test-reason")) == 1)
        #expect(try count(MetricName.deadLettered, here, ("reason", "test-reason")) == 1)
        #expect(try count(MetricName.deadLettered, here, ("reason", "not-json")) == 1)
        #expect(try count(MetricName.discarded, here, ("reason", "test-reason")) == 1)
        #expect(try count(MetricName.published, ("exchange", "notifications"), ("result", "nacked")) == 1)
        #expect(try count(MetricName.published, ("exchange", "notifications"), ("result", "confirmed")) == 1)
        #expect(try metrics.expectGauge(MetricName.inFlight, [("stage", "rules"), here]).lastValue == 0)
        let time = try metrics.expectTimer(
            MetricName.handleDuration, [("stage", "rules"), here, ("answer", "decided")])
        #expect(!time.values.isEmpty)
    }

    @Test func `the outage gauge is 1 during an outage and 0 afterwards`() async throws {
        let bus = InMemoryBus(apps: [demo])
        let metrics = TestMetrics()
        let dependency = Dependency()
        let handler = ScriptedHandler(using: dependency)
        let labels = [("stage", "rules"), ("queue", "rules.events")]
        try await withMetrics(metrics) {
            try await withStage(bus, handler) { _ in
                bus.event("a")
                // The gauge is created with the first report.
                try await eventually { (try? metrics.expectGauge(MetricName.outage, labels))?.lastValue == 1 }
                dependency.recover()
                try await eventually { bus.isSettled(queue.name) }
                try await eventually { (try? metrics.expectGauge(MetricName.outage, labels))?.lastValue == 0 }
            }
        }
    }

    @Test func `the age of a queue is that of the message handled last, and 0 when it is idle`() async throws {
        let bus = InMemoryBus(apps: [demo])
        let metrics = TestMetrics()
        let dependency = Dependency()
        let handler = ScriptedHandler(using: dependency)
        let labels = [("stage", "rules"), ("queue", "rules.events")]
        func age() -> Double? { (try? metrics.expectGauge(MetricName.queueAge, labels))?.lastValue }
        try await withMetrics(metrics) {
            try await withStage(bus, handler) { _ in
                bus.event("a", properties: AMQPProperties(timestamp: Timestamp.now.seconds - 90))
                try await eventually { age().map { $0 >= 90 && $0 < 600 } ?? false }
                dependency.recover()
                try await eventually { bus.isSettled(queue.name) }
                try await eventually { age() == 0 }
            }
        }
    }

    private func withMetrics(_ metrics: TestMetrics, _ body: () async throws -> Void) async throws {
        try await withMetricsFactory(metrics) { try await body() }
    }
}
