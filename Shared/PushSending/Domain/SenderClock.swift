package import PushProtocol

/// The clocks and the sleep function of senders, injected for tests.
package struct SenderClock: Sendable {
    /// The time of day, for expirations and `iat` claims.
    package var now: @Sendable () -> Timestamp
    /// Monotonic time since an arbitrary start, for ages and pauses.
    package var uptime: @Sendable () -> Duration
    package var sleep: @Sendable (Duration) async throws -> Void

    package init(
        now: @escaping @Sendable () -> Timestamp, uptime: @escaping @Sendable () -> Duration,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.now = now
        self.uptime = uptime
        self.sleep = sleep
    }

    package static let system: SenderClock = {
        let start = ContinuousClock.now
        return SenderClock(
            now: { .now }, uptime: { ContinuousClock.now - start }, sleep: { try await Task.sleep(for: $0) })
    }()
}
