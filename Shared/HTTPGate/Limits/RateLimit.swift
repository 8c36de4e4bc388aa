/// How many requests each of many callers may make in a window: a full bucket of a window's worth, filled evenly.
///
/// Of each caller one instant is kept, that at which the bucket will be full again. Callers whose bucket is full are
/// forgotten, and no more than twice `capacity` are remembered; beyond that, who has not called for longest has a full
/// bucket too early.
struct RateLimit<Caller: Hashable & Sendable>: Sendable {
    private let window: Duration
    private let interval: Duration
    private let capacity: Int
    private var current: [Caller: ContinuousClock.Instant] = [:]
    /// The callers from before this generation. It began a window after the one before, or when that was full.
    private var previous: [Caller: ContinuousClock.Instant] = [:]
    private var begun: ContinuousClock.Instant

    /// - Parameter perMinute: at least 1.
    init(perMinute: Int, capacity: Int = 50_000, now: ContinuousClock.Instant) {
        self.init(perMinute, per: .seconds(60), capacity: capacity, now: now)
    }

    /// - Parameter most: how many in a window; at least 1.
    init(_ most: Int, per window: Duration, capacity: Int = 50_000, now: ContinuousClock.Instant) {
        self.window = window
        interval = window / max(1, most)
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
        if now - begun >= window || current.count >= capacity {
            previous = now - begun >= window + window ? [:] : current
            current = [:]
            begun = now
        }
        if let wait = wait(caller, now: now) { return wait }
        current[caller] = full(caller, now: now) + interval
        return nil
    }

    /// How long it takes until there is a request in the caller's bucket; `nil` when there is one. Takes nothing.
    func wait(_ caller: Caller, now: ContinuousClock.Instant) -> Duration? {
        let wait = full(caller, now: now) + interval - window - now
        return wait > .zero ? wait : nil
    }

    private func full(_ caller: Caller, now: ContinuousClock.Instant) -> ContinuousClock.Instant {
        max(current[caller] ?? previous[caller] ?? now, now)
    }
}
