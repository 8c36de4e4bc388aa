import Foundation

/// How long something takes, from draw to draw.
enum Latency: Hashable, Sendable {
    case fixed(Duration)
    case uniform(ClosedRange<Double>)
    /// By its mean.
    case exponential(mean: Double)
    /// Log-normal, by its median and its 99th percentile: a long tail as networks have it.
    case quantiles(p50: Double, p99: Double)

    static let none = Latency.fixed(.zero)
    /// No draw is longer, in milliseconds: an hour.
    static let maximum = 3_600_000.0
    /// The 99th percentile of the standard normal distribution.
    private static let z99 = 2.326_347_874_040_841

    func draw(_ draws: inout Draws) -> Duration {
        let milliseconds: Double
        switch self {
        case .fixed(let duration): return duration
        case .uniform(let range):
            milliseconds = range.lowerBound + draws.fraction() * (range.upperBound - range.lowerBound)
        case .exponential(let mean): milliseconds = -mean * log(1 - draws.fraction())
        case .quantiles(let p50, let p99):
            // Box–Muller.
            let radius = (-2 * log(1 - draws.fraction())).squareRoot()
            let normal = radius * cos(2 * .pi * draws.fraction())
            milliseconds = p50 * exp(normal * log(p99 / p50) / Self.z99)
        }
        return .microseconds(Int64(min(milliseconds, Self.maximum) * 1000))
    }
}
