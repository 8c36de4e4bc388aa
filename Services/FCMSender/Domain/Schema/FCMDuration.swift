/// A `google.protobuf.Duration` in its JSON form: decimal seconds with at most nine digits of fraction, and `s`.
struct FCMDuration: Hashable, Sendable {
    let isNegative: Bool
    /// Whole seconds, rounded towards zero as FCM does.
    let seconds: Int64
    let nanoseconds: Int64

    /// `nil` for any other text.
    init?(_ text: String) {
        guard let match = text.wholeMatch(of: /(-?)(\d{1,12})(?:\.(\d{1,9}))?s/), let seconds = Int64(match.2) else {
            return nil
        }
        let fraction = match.3.map { $0 + String(repeating: "0", count: 9 - $0.count) } ?? "0"
        guard let nanoseconds = Int64(fraction) else { return nil }
        isNegative = !match.1.isEmpty
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }
}
