/// The content of `/metrics`.
struct Exposition: Sendable {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    let service: String
    let registry: PrometheusRegistry
    let logs: LogSink
    let readiness: Readiness

    func render() -> String {
        let labels = MetricName.labels([("service", service), ("version", Build.version)])
        return registry.render() + ProcessMetrics.render() + """
            # TYPE heliograph_build_info gauge
            heliograph_build_info\(labels) 1
            # TYPE heliograph_log_lines_dropped_total counter
            heliograph_log_lines_dropped_total \(logs.droppedLines)
            # TYPE heliograph_metric_series_refused_total counter
            heliograph_metric_series_refused_total \(registry.refusedSeries)
            # TYPE heliograph_ready gauge
            heliograph_ready \(readiness.report.isReady ? 1 : 0)

            """
    }
}
