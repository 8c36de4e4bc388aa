import CoreMetrics
import Metrics
import Testing

@testable import ServiceKit

@Suite struct PrometheusRegistryTests {
    private let registry = PrometheusRegistry(limit: 3)

    @Test func `counters add up across the handles of one series`() {
        for _ in 0..<2 {
            Counter(
                label: "messages.consumed", dimensions: [("queue", "rules.events"), ("lane", "bulk")], factory: registry
            )
            .increment(by: 2)
        }
        Counter(
            label: "messages_consumed", dimensions: [("lane", "bulk"), ("queue", "rules.events")], factory: registry
        )
        .increment()
        #expect(
            registry.render() == """
                # HELP heliograph_messages_consumed_total Deliveries received from the queue.
                # TYPE heliograph_messages_consumed_total counter
                heliograph_messages_consumed_total{lane="bulk",queue="rules.events"} 5

                """)
    }

    @Test func `label values are escaped and label names sanitized`() {
        Counter(
            label: "x", dimensions: [("a-b", "back\\slash \"quote\" new\nline"), ("le", "1"), ("0", "z")],
            factory: registry
        )
        .increment()
        #expect(
            registry.render().contains(
                #"heliograph_x_total{_0="z",a_b="back\\slash \"quote\" new\nline",le_="1"} 1"#))
    }

    @Test func `gauges go up and down`() {
        let meter = Meter(label: "pool.connections", factory: registry)
        meter.set(5)
        meter.increment(by: 0.5)
        meter.decrement(by: 2)
        Gauge(label: "paused", factory: registry).record(1)
        #expect(
            registry.render().contains("# TYPE heliograph_pool_connections gauge\nheliograph_pool_connections 3.5\n"))
        #expect(registry.render().contains("# TYPE heliograph_paused gauge\nheliograph_paused 1\n"))
    }

    @Test func `a timer is a histogram of seconds with cumulative buckets`() {
        let timer = Timer(label: "message_processing", dimensions: [("queue", "q")], factory: registry)
        timer.recordNanoseconds(1_000_000)
        timer.recordNanoseconds(30_000_000)
        timer.recordNanoseconds(120_000_000_000)
        let lines = Set(registry.render().split(separator: "\n").map(String.init))
        #expect(
            lines.isSuperset(of: [
                "# TYPE heliograph_message_processing_seconds histogram",
                #"heliograph_message_processing_seconds_bucket{queue="q",le="0.0005"} 0"#,
                #"heliograph_message_processing_seconds_bucket{queue="q",le="0.001"} 1"#,
                #"heliograph_message_processing_seconds_bucket{queue="q",le="0.05"} 2"#,
                #"heliograph_message_processing_seconds_bucket{queue="q",le="60"} 2"#,
                #"heliograph_message_processing_seconds_bucket{queue="q",le="+Inf"} 3"#,
                #"heliograph_message_processing_seconds_count{queue="q"} 3"#,
            ]))
        #expect(lines.contains { $0.hasPrefix(#"heliograph_message_processing_seconds_sum{queue="q"} 120.031"#) })
    }

    @Test func `the delay of a push has buckets up to hours`() {
        let label = "heliograph_event_to_accepted_seconds"
        Timer(label: label, factory: registry).recordSeconds(400)
        #expect(registry.render().contains("\(label)_bucket{le=\"300\"} 0\n\(label)_bucket{le=\"900\"} 1\n"))
        #expect(registry.render().contains("\(label)_bucket{le=\"5\"}"))
    }

    @Test func `samples are read at each scrape, and a second source replaces the first`() {
        let samples = MetricSamples()
        samples.register("heliograph_broker_blocked") { 1 }
        samples.register("heliograph_database_connections", labels: [("state", "idle")]) { 3 }
        samples.register("heliograph_database_connections", labels: [("state", "in-use")]) { 2 }
        samples.register("heliograph_broker_blocked") { 0 }
        #expect(
            samples.render() == """
                # HELP heliograph_broker_blocked 1 while the broker blocks publishers because of a memory or disk alarm.
                # TYPE heliograph_broker_blocked gauge
                heliograph_broker_blocked 0
                # HELP heliograph_database_connections Open database connections, in use or idle.
                # TYPE heliograph_database_connections gauge
                heliograph_database_connections{state="idle"} 3
                heliograph_database_connections{state="in-use"} 2

                """)
    }

    @Test func `a histogram without labels has only the label le`() {
        Recorder(label: "batch_size", factory: registry).record(7)
        #expect(registry.render().contains("heliograph_batch_size_bucket{le=\"10\"} 1\n"))
        #expect(registry.render().contains("heliograph_batch_size_sum 7\nheliograph_batch_size_count 1\n"))
    }

    @Test func `series above the limit of a name are refused and counted`() {
        for user in 0..<10 {
            Counter(label: "leak", dimensions: [("user", "\(user)")], factory: registry).increment()
        }
        #expect(registry.render().split(separator: "\n").count == 4)
        #expect(registry.refusedSeries == 7)
    }

    @Test func `a name has one kind`() {
        Meter(label: "thing", factory: registry).set(1)
        Recorder(label: "thing", factory: registry).record(1)
        #expect(registry.refusedSeries == 1)
        #expect(registry.render() == "# TYPE heliograph_thing gauge\nheliograph_thing 1\n")
    }

    @Test func `a destroyed series is removed`() {
        let counter = registry.makeCounter(label: "gone", dimensions: [("app", "a")])
        counter.increment(by: 1)
        #expect(registry.render().contains("app=\"a\""))
        registry.destroyCounter(counter)
        #expect(!registry.render().contains("app=\"a\""))
    }

    @Test func `concurrent increments are all counted`() async {
        let counter = Counter(label: "hits", factory: registry)
        let float = FloatingPointCounter(label: "work", factory: registry)
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<1000 {
                        counter.increment()
                        float.increment(by: 0.5)
                    }
                }
            }
        }
        #expect(registry.render().contains("heliograph_hits_total 4000\n"))
        #expect(registry.render().contains("heliograph_work_total 2000\n"))
    }

    @Test(arguments: [
        (0.25, "0.25"), (3, "3"), (.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN"), (1e20, "1e+20"),
    ])
    func `numbers are written in the text format`(value: Double, text: String) {
        #expect(value.prometheusText == text)
    }
}
