import CoreMetrics
import Synchronization

/// swift-metrics' backend: stores all series and renders them in Prometheus' text format 0.0.4.
///
/// Memory is bounded: a name has at most `limit` series; further ones are counted and discarded. Creating a metric
/// takes a lock; recording takes at most its series' lock.
final class PrometheusRegistry: MetricsFactory {
    /// The default maximum of series for a name: more than apps × lanes × reasons.
    static let defaultLimit = 1000

    private enum Kind: String { case counter, gauge, histogram }

    private struct Family {
        let kind: Kind
        var series: [String: any MetricSeries] = [:]
    }

    private struct Families {
        var byName: [String: Family] = [:]
        var refused = 0
    }

    private let limit: Int
    private let families = Mutex(Families())

    init(limit: Int = defaultLimit) { self.limit = limit }

    /// The series refused because of the limit, or because the name exists with another kind.
    var refusedSeries: Int { families.withLock { $0.refused } }

    /// Renders all series, sorted by family and labels.
    func render() -> String {
        let families = families.withLock { $0.byName }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            text += MetricHelp.header(name, family.kind.rawValue)
            for (labels, series) in family.series.sorted(by: { $0.key < $1.key }) {
                series.render(name, labels, into: &text)
            }
        }
        return text
    }

    /// Returns the series of these dimensions, creating it if needed; `nil` if it is refused.
    private func series<Series: MetricSeries>(
        _ name: String, _ dimensions: [(String, String)], _ kind: Kind, _ make: () -> Series
    ) -> Series? {
        let labels = MetricName.labels(dimensions)
        return families.withLock { families in
            var family = families.byName[name] ?? Family(kind: kind)
            if let known = family.series[labels] as? Series, family.kind == kind { return known }
            guard family.kind == kind, family.series[labels] == nil, family.series.count < limit else {
                families.refused += 1
                return nil
            }
            let series = make()
            family.series[labels] = series
            families.byName[name] = family
            return series
        }
    }

    private func remove(_ handler: AnyObject) {
        families.withLock { families in
            for (name, family) in families.byName {
                guard let labels = family.series.first(where: { $0.value as AnyObject === handler })?.key else {
                    continue
                }
                families.byName[name]?.series[labels] = nil
                return
            }
        }
    }
}

extension PrometheusRegistry {
    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(MetricName.family(label, suffix: "_total"), dimensions, .counter) { CounterSeries() }
            ?? NOOPMetricsHandler.instance
    }

    func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        series(MetricName.family(label, suffix: "_total"), dimensions, .counter) { NumberSeries() }
            ?? NOOPMetricsHandler.instance
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(MetricName.family(label, suffix: ""), dimensions, .gauge) { NumberSeries() }
            ?? NOOPMetricsHandler.instance
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        let name = MetricName.family(label, suffix: "")
        let handler: (any RecorderHandler)? =
            if aggregate {
                series(name, dimensions, .histogram) { HistogramSeries(bounds: HistogramSeries.valueBuckets) }
            } else {
                series(name, dimensions, .gauge) { NumberSeries() }
            }
        return handler ?? NOOPMetricsHandler.instance
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(MetricName.family(label, suffix: "_seconds"), dimensions, .histogram) {
            HistogramSeries(bounds: HistogramSeries.bounds(of: label))
        } ?? NOOPMetricsHandler.instance
    }

    func destroyCounter(_ handler: any CounterHandler) { remove(handler) }
    func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) { remove(handler) }
    func destroyMeter(_ handler: any MeterHandler) { remove(handler) }
    func destroyRecorder(_ handler: any RecorderHandler) { remove(handler) }
    func destroyTimer(_ handler: any TimerHandler) { remove(handler) }
}
