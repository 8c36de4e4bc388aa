/// How many requests a minute each of many callers may make: a full bucket of a minute's worth, filled evenly.
///
/// Of each caller one instant is kept, that at which the bucket will be full again. Callers whose bucket is full are
/// forgotten, and no more than twice `capacity` are remembered; beyond that, who has not called for longest has a full
/// bucket too early.
struct RateLimit<Caller: Hashable & Sendable>: Sendable {
    private static var window: Duration { .seconds(60) }

    private let interval: Duration
    private let capacity: Int
    private var current: [Caller: ContinuousClock.Instant] = [:]
    /// Who called before this generation began. It began a minute after the one before, or when that was full.
    private var previous: [Caller: ContinuousClock.Instant] = [:]
    private var begun: ContinuousClock.Instant

    /// - Parameter perMinute: at least 1.
    init(perMinute: Int, capacity: Int = 50_000, now: ContinuousClock.Instant) {
        interval = Self.window / max(1, perMinute)
        self.capacity = capacity
        begun = now
    }

    /// The callers that are remembered.
    var count: Int { current.count + previous.count }

    /// Takes one request out of the caller's bucket.
    ///
    /// - Returns: `nil`, or how long it takes until there is one in it again.
    mutating func take(_ caller: Caller, now: ContinuousClock.Instant) -> Duration? {
        // Whoever did not call in the generation before this one has a full bucket by now.
        if now - begun >= Self.window || current.count >= capacity {
            previous = now - begun >= Self.window + Self.window ? [:] : current
            current = [:]
            begun = now
        }
        let full = max(current[caller] ?? previous[caller] ?? now, now)
        let wait = full + interval - Self.window - now
        guard wait <= .zero else { return wait }
        current[caller] = full + interval
        return nil
    }
}
