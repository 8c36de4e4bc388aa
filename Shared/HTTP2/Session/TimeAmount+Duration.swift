import NIOCore

extension TimeAmount {
    /// The same span for NIO's timers, at most a hundred years of it.
    init(_ duration: Duration) {
        let century = Duration.seconds(100 * 366 * 86_400)
        let (seconds, attoseconds) = min(duration, century).components
        self = .nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }
}
