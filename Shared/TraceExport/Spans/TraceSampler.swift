import PushProtocol

/// Samples a share of the traces that begin here. (A span with a parent has the decision of its parent.)
///
/// The decision about a new trace depends on its id only, like that of OpenTelemetry's sampler `TraceIdRatioBased`.
package struct TraceSampler: Sendable {
    /// The number of values of the random part of an id: its lower 56 bits (W3C Trace Context Level 2, §random-trace-id).
    private static let space: UInt64 = 1 << 56
    /// Ids with a random part below it are sampled.
    private let threshold: UInt64

    /// - Parameter ratio: the share of sampled traces, from 0 to 1.
    package init(ratio: Double) {
        threshold = UInt64(max(0, min(1, ratio)) * Double(Self.space))
    }

    /// Whether a trace that begins here is sampled.
    func isSampled(_ trace: TraceID) -> Bool { trace.low % Self.space < threshold }
}
