/// A `google.protobuf.Duration` in its JSON form: decimal seconds with at most nine fractional digits, and `s`.
struct FCMDuration: Hashable, Sendable {
    let isNegative: Bool
    /// Whole seconds, rounded towards zero as in FCM.
    let seconds: Int64
    let nanoseconds: Int64

    /// Returns `nil` for any other text.
    init?(_ text: String) {
        // Parses bytes, because most pushes have a duration and a regular expression is compiled for each match.
        var rest = Substring(text).utf8
        isNegative = rest.first == UInt8(ascii: "-")
        if isNegative { rest.removeFirst() }
        guard let seconds = Self.digits(&rest, atMost: 12) else { return nil }
        self.seconds = seconds.value
        if rest.first == UInt8(ascii: ".") {
            rest.removeFirst()
            guard let fraction = Self.digits(&rest, atMost: 9) else { return nil }
            nanoseconds = (fraction.count..<9).reduce(fraction.value) { value, _ in value * 10 }
        } else {
            nanoseconds = 0
        }
        guard rest.elementsEqual("s".utf8) else { return nil }
    }

    /// Removes leading digits from `rest`; `nil` for none or more than `limit`.
    private static func digits(_ rest: inout Substring.UTF8View, atMost limit: Int) -> (value: Int64, count: Int)? {
        var (value, count) = (Int64(0), 0)
        while let digit = rest.first.map({ $0 &- UInt8(ascii: "0") }), digit < 10 {
            count += 1
            guard count <= limit else { return nil }
            value = value * 10 + Int64(digit)
            rest.removeFirst()
        }
        return count > 0 ? (value, count) : nil
    }
}
