/// A token bucket for each caller, holding one window's requests and refilled evenly.
///
/// Stores one instant for each caller: the time at which the bucket is full again. Full buckets are dropped. At most
/// twice `capacity` callers are stored; above that, the oldest callers get a full bucket early.
struct TokenBuckets<Caller: Hashable & Sendable>: Sendable {
    private let window: Duration
    private let interval: Duration
    private let capacity: Int
    private var current: [Caller: ContinuousClock.Instant] = [:]
    /// The callers of the previous generation. A generation ends after a window, or when it has `capacity` callers.
    private var previous: [Caller: ContinuousClock.Instant] = [:]
    private var begun: ContinuousClock.Instant

    /// Creates buckets of `maximum` requests in a window; at least 1.
    init(_ maximum: Int, per window: Duration, capacity: Int = 50_000, now: ContinuousClock.Instant) {
        self.window = window
        interval = window / max(1, maximum)
        self.capacity = capacity
        begun = now
    }

    /// The number of stored callers.
    var count: Int { current.count + previous.count }

    /// Takes one token from the caller's bucket.
    ///
    /// - Returns: `nil` on success; otherwise the time until the next token.
    mutating func take(_ caller: Caller, now: ContinuousClock.Instant) -> Duration? {
        if let wait = wait(caller, now: now) { return wait }
        charge(1, to: caller, now: now)
        return nil
    }

    /// Takes tokens from the caller's bucket, also ones that it does not have yet: the next token then comes later.
    mutating func charge(_ count: Int, to caller: Caller, now: ContinuousClock.Instant) {
        // A caller in neither generation has a full bucket.
        if now - begun >= window || current.count >= capacity {
            previous = now - begun >= window + window ? [:] : current
            current = [:]
            begun = now
        }
        current[caller] = full(caller, now: now) + interval * count
    }

    /// Returns the time until the caller's next token; `nil` if there is one now. Takes nothing.
    func wait(_ caller: Caller, now: ContinuousClock.Instant) -> Duration? {
        let wait = full(caller, now: now) + interval - window - now
        return wait > .zero ? wait : nil
    }

    private func full(_ caller: Caller, now: ContinuousClock.Instant) -> ContinuousClock.Instant {
        max(current[caller] ?? previous[caller] ?? now, now)
    }
}
