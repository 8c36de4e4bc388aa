package import PushProtocol

/// Where a body says how many whole seconds its push still has: decimal digits, which a request that waits for a stream
/// makes wrong. A class, since all bodies of a rendering share it.
package final class Countdown: Sendable {
    private let until: Timestamp
    private let most: Int64
    /// The seconds that stand in the body.
    package let written: Int64
    /// Where the digits begin, from the first place to the last.
    private let places: TextPlaces

    /// - Parameters:
    ///   - until: when the push's time is over.
    ///   - most: the most seconds that the provider takes.
    ///   - places: where the digits begin in the body.
    ///   - now: the time of day for which the body is written.
    package init(until: Timestamp, most: Int64, places: TextPlaces, now: Timestamp) {
        self.until = until
        self.most = most
        self.places = places
        written = Self.seconds(until: until, most: most, now: now)
    }

    /// Whole seconds from `now` to `until`, from none to `most`.
    package static func seconds(until: Timestamp, most: Int64, now: Timestamp) -> Int64 {
        let (left, overflows) = until.milliseconds.subtractingReportingOverflow(now.milliseconds)
        guard !overflows else { return until < now ? 0 : most }
        return min(max(left / 1000, 0), most)
    }

    /// `body` with the seconds that are left at `now`.
    ///
    /// - Parameter shift: how much later in `body` each place is.
    func body(_ body: [UInt8], shift: Int, at now: Timestamp) -> [UInt8] {
        let left = Self.seconds(until: until, most: most, now: now)
        guard left != written else { return body }
        let old = String(written).utf8.count
        let digits = Array(String(left).utf8)
        var rewritten: [UInt8] = []
        rewritten.reserveCapacity(body.count)
        var start = 0
        for index in 0..<places.count {
            let place = places[index]
            rewritten += body[start..<place + shift]
            rewritten += digits
            start = place + shift + old
        }
        rewritten += body[start...]
        return rewritten
    }
}
