struct Exposition: Sendable {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    let service: String
    let registry: PrometheusRegistry
    let samples: MetricSamples
    let logs: LogSink
    let readiness: Readiness

    func render() -> String {
        let report = readiness.report
        var text = registry.render() + samples.render() + ProcessMetrics.render()
        func family(_ name: String, _ type: String, _ values: [(labels: [(String, String)], value: Int)]) {
            guard !values.isEmpty else { return }
            text += MetricHelp.header(name, type)
            for (labels, value) in values { text += "\(name)\(MetricName.labels(labels)) \(value)\n" }
        }
        family("heliograph_build_info", "gauge", [([("service", service), ("version", Build.version)], 1)])
        family("heliograph_log_lines_dropped_total", "counter", [([], logs.droppedLines)])
        family("heliograph_metric_series_refused_total", "counter", [([], registry.refusedSeries)])
        family("heliograph_ready", "gauge", [([], report.isReady ? 1 : 0)])
        family(
            "heliograph_ready_condition", "gauge",
            report.conditions.map { ([("condition", $0.name)], $0.state == .holds ? 1 : 0) })
        return text
    }
}
