import CoreMetrics
import Synchronization

/// One label set of a metric family (Prometheus text format): one line, or the lines of a histogram.
protocol MetricSeries: Sendable {
    /// Appends the current samples.
    ///
    /// - Parameters:
    ///   - family: The name of the metric family, such as `http_requests_total`.
    ///   - labels: The label set with its braces; empty without labels.
    func render(_ family: String, _ labels: String, into text: inout String)
}

/// An integer counter. An increment is one atomic instruction.
final class CounterSeries: MetricSeries, CounterHandler {
    private let value = Atomic<Int64>(0)

    func increment(by amount: Int64) { value.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { value.store(0, ordering: .relaxed) }

    func render(_ family: String, _ labels: String, into text: inout String) {
        text += "\(family)\(labels) \(value.load(ordering: .relaxed))\n"
    }
}

/// A gauge or a floating-point counter. The atomic word holds the bits of the `Double`.
///
/// A recorder without aggregation is a gauge, too. One with aggregation is a ``HistogramSeries``.
final class NumberSeries: MetricSeries, MeterHandler, RecorderHandler, FloatingPointCounterHandler {
    private let bits = Atomic<UInt64>(Double.zero.bitPattern)

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }
    func reset() { set(Double.zero) }
    func decrement(by amount: Double) { increment(by: -amount) }

    func increment(by amount: Double) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let result = bits.compareExchange(expected: old, desired: new, ordering: .relaxed)
            if result.exchanged { return }
            old = result.original
        }
    }

    func render(_ family: String, _ labels: String, into text: inout String) {
        text += "\(family)\(labels) \(Double(bitPattern: bits.load(ordering: .relaxed)).prometheusText)\n"
    }
}

/// A histogram with fixed buckets. Takes one lock for each observation.
final class HistogramSeries: MetricSeries, TimerHandler, RecorderHandler {
    /// Buckets for durations in seconds: from a local query to a provider's time-out.
    static let secondsBuckets = [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
    ]
    /// Buckets for delays in seconds: from a quick delivery to one that waited out an incident.
    static let delayBuckets: [Double] = [
        0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 21_600,
    ]
    /// The metrics with ``delayBuckets``.
    private static let delays: Set<String> = ["heliograph_event_to_accepted_seconds"]

    /// The bounds of the timer with this label.
    static func bounds(of label: String) -> [Double] { delays.contains(label) ? delayBuckets : secondsBuckets }

    static let valueBuckets: [Double] = [
        1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 100_000, 1_000_000,
    ]

    private struct Observations {
        /// The observations in each bucket alone. The last bucket is `+Inf`. ``render(_:_:into:)`` accumulates them.
        var counts: [Int]
        var sum = 0.0
    }

    /// The inclusive upper bounds of the buckets, ascending, without `+Inf`.
    private let bounds: [Double]
    private let observations: Mutex<Observations>

    init(bounds: [Double]) {
        self.bounds = bounds
        observations = Mutex(Observations(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        observations.withLock {
            $0.counts[bucket] += 1
            $0.sum += value
        }
    }

    func render(_ family: String, _ labels: String, into text: inout String) {
        let snapshot = observations.withLock { $0 }
        // The label `le` follows the other labels inside the braces.
        let otherLabels = labels.isEmpty ? "" : labels.dropFirst().dropLast() + ","
        var total = 0
        for (bound, count) in zip(bounds.map(\.prometheusText) + ["+Inf"], snapshot.counts) {
            total += count
            text += "\(family)_bucket{\(otherLabels)le=\"\(bound)\"} \(total)\n"
        }
        text += "\(family)_sum\(labels) \(snapshot.sum.prometheusText)\n"
        text += "\(family)_count\(labels) \(total)\n"
    }
}

extension Double {
    /// The number in the Prometheus text format: `0.25`, `3`, `+Inf`, `NaN`.
    var prometheusText: String {
        if isNaN { return "NaN" }
        if isInfinite { return self < 0 ? "-Inf" : "+Inf" }
        if self == rounded(), magnitude < 1e15 { return String(Int64(self)) }
        return description
    }
}
