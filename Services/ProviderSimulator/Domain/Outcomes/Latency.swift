import Foundation

enum Latency: Hashable, Sendable {
    case fixed(Duration)
    case uniform(ClosedRange<Double>)
    case exponential(mean: Double)
    /// Log-normal, given by median and 99th percentile: a long tail, as in real networks.
    case quantiles(p50: Double, p99: Double)

    static let none = Latency.fixed(.zero)
    /// The maximum delay in milliseconds: an hour.
    static let maximum = 3_600_000.0
    /// The 99th percentile of the standard normal distribution.
    private static let z99 = 2.326_347_874_040_841

    func sample(_ random: inout SeededRandom) -> Duration {
        let milliseconds: Double
        switch self {
        case .fixed(let duration): return duration
        case .uniform(let range):
            milliseconds = range.lowerBound + random.fraction() * (range.upperBound - range.lowerBound)
        case .exponential(let mean): milliseconds = -mean * log(1 - random.fraction())
        case .quantiles(let p50, let p99):
            // Box–Muller.
            let radius = (-2 * log(1 - random.fraction())).squareRoot()
            let normal = radius * cos(2 * .pi * random.fraction())
            milliseconds = p50 * exp(normal * log(p99 / p50) / Self.z99)
        }
        return .microseconds(Int64(min(milliseconds, Self.maximum) * 1000))
    }
}
