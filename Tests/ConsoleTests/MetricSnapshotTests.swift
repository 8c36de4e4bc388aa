import Testing

@testable import Console

@Suite struct MetricSnapshotTests {
    @Test func `samples with labels and escapes are read`() {
        let snapshot = MetricSnapshot(
            """
            # HELP heliograph_ready Whether the service is ready.
            # TYPE heliograph_ready gauge
            heliograph_ready 1
            heliograph_queue_age_seconds{queue="a\\"b\\\\c\\nd",app="x"} 2.5 1767225600000
            heliograph_queue_age_seconds{queue="e"} +Inf
            broken{
            """)
        #expect(snapshot["heliograph_ready"] == [.init(labels: [:], value: 1)])
        #expect(
            snapshot["heliograph_queue_age_seconds"] == [
                .init(labels: ["queue": "a\"b\\c\nd", "app": "x"], value: 2.5),
                .init(labels: ["queue": "e"], value: .infinity),
            ])
        #expect(snapshot["broken"].isEmpty && snapshot["absent"].isEmpty)
    }

    @Test func `a list of services`() {
        #expect(
            ObservedService.list("rules=http://rules:9400/, feedback=https://f") == [
                ObservedService(name: "rules", address: "http://rules:9400"),
                ObservedService(name: "feedback", address: "https://f"),
            ])
        #expect(ObservedService.list("") == [])
        #expect(ObservedService.problem(with: "rules") != nil)
        #expect(ObservedService.problem(with: "rules=ftp://x") != nil)
    }
}
