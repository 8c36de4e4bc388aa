package import PushProtocol

/// The two clocks and the one way to wait that the senders use, injected so that tests own time.
package struct SenderClock: Sendable {
    /// Time of day: what expirations and `iat` claims are compared with.
    package var now: @Sendable () -> Timestamp
    /// Monotonic time since some start: what ages and pauses are measured with, so that a clock that jumps moves none.
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
