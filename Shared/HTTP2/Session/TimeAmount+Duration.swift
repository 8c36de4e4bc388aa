import NIOCore

extension TimeAmount {
    /// Converts a `Duration`, capped at a hundred years.
    init(_ duration: Duration) {
        let century = Duration.seconds(100 * 366 * 86_400)
        let (seconds, attoseconds) = min(duration, century).components
        self = .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}
