package import PushProtocol

/// The TTL digits in a request body, which have to be rewritten when the request waits for a stream.
///
/// A class, because all bodies of a rendering share it.
package final class TTLCountdown: Sendable {
    private let until: Timestamp
    private let maximum: Int64
    /// The seconds that the body contains.
    package let written: Int64
    /// The start of the digits, ascending.
    private let offsets: TextOffsets

    /// - Parameters:
    ///   - until: when the push expires.
    ///   - maximum: the longest TTL that the provider accepts, in seconds.
    ///   - offsets: the start of the digits in the body.
    ///   - now: the time of day for which the body is written.
    package init(until: Timestamp, maximum: Int64, offsets: TextOffsets, now: Timestamp) {
        self.until = until
        self.maximum = maximum
        self.offsets = offsets
        written = Self.seconds(until: until, maximum: maximum, now: now)
    }

    /// Whole seconds from `now` to `until`, clamped to 0…`maximum`.
    package static func seconds(until: Timestamp, maximum: Int64, now: Timestamp) -> Int64 {
        let (left, overflows) = until.milliseconds.subtractingReportingOverflow(now.milliseconds)
        guard !overflows else { return until < now ? 0 : maximum }
        return min(max(left / 1000, 0), maximum)
    }

    /// Returns `body` with the TTL at `now`.
    ///
    /// - Parameter shift: added to each offset.
    func body(_ body: [UInt8], shift: Int, at now: Timestamp) -> [UInt8] {
        let left = Self.seconds(until: until, maximum: maximum, now: now)
        guard left != written else { return body }
        let old = String(written).utf8.count
        let digits = Array(String(left).utf8)
        var rewritten: [UInt8] = []
        rewritten.reserveCapacity(body.count)
        var start = 0
        for index in 0..<offsets.count {
            let offset = offsets[index]
            rewritten += body[start..<offset + shift]
            rewritten += digits
            start = offset + shift + old
        }
        rewritten += body[start...]
        return rewritten
    }
}
