package import Logging
package import PushProtocol
internal import FoundationEssentials
internal import Metrics
internal import ServiceLifecycle
internal import Synchronization

/// Rate limiter for the quota of one project: a thread-safe ``TokenBucket`` that callers wait for.
package final class QuotaLimiter: Sendable {
    /// The longest wait of a push before it returns to the bus. Far below RabbitMQ's consumer timeout of 30 minutes.
    static let maxWait = Duration.seconds(150)
    /// The longest wait of a probe. All other pushes of its route wait for the probe.
    static let maxProbeWait = Duration.seconds(1)

    enum QuotaPermit: Hashable, Sendable {
        /// The number of targets to send to now, at least 1.
        case granted(Int)
        /// The quota allows nothing before the deadline. Retry after this time.
        case later(Duration)
    }

    private struct State {
        var bucket: TokenBucket
        var detector = QuotaExhaustionDetector()
    }

    /// The project of the quota, for metrics and logs.
    private let name: String
    private let clock: SenderClock
    private let logger: Logger
    private let rate: Gauge
    private let state: Mutex<State>

    /// - Parameters:
    ///   - name: the project; labels the gauge `heliograph_push_quota_rate`.
    ///   - perMinute: the quota of all processes, in messages a minute.
    package init(_ name: String, provider: Provider, perMinute: Int, clock: SenderClock = .system, logger: Logger) {
        self.name = name
        self.clock = clock
        self.logger = logger
        rate = Gauge(
            label: "heliograph_push_quota_rate", dimensions: [("provider", provider.rawValue), ("project", name)])
        state = Mutex(State(bucket: TokenBucket(perMinute: perMinute, now: clock.uptime())))
    }

    /// The end of the longest wait of a push that starts now.
    var deadline: Duration { clock.uptime() + Self.maxWait }
    var probeDeadline: Duration { clock.uptime() + Self.maxProbeWait }

    /// Asks to send to `wanted` targets. Waits until `deadline`, cancellation or shutdown.
    func admit(_ wanted: Int, _ lane: Lane, until deadline: Duration) async -> QuotaPermit {
        while true {
            let now = clock.uptime()
            switch state.withLock({ $0.bucket.take(wanted, lane, now: now) }) {
            case .granted(let count): return .granted(count)
            case .wait(let pause):
                guard now + pause <= deadline else { return .later(pause) }
                do {
                    try await cancelWhenGracefulShutdown { [clock] in try await clock.sleep(pause) }
                } catch {
                    return .later(.zero)
                }
                if Task.isCancelled || Task.isShuttingDownGracefully { return .later(.zero) }
            }
        }
    }

    /// Records the answers to targets that were sent together.
    ///
    /// - Parameters:
    ///   - pause: the longest delay that the provider asked for.
    ///   - answered: the number of targets with another answer.
    func record(throttled devices: Set<UUID>, pause: Duration, answered: Int) {
        guard !devices.isEmpty || answered > 0 else { return }
        let now = clock.uptime()
        let isExhausted = state.withLock { state in
            let isExhausted = state.detector.record(throttled: devices, answered: answered)
            if isExhausted { state.bucket.pauseSending(for: pause, now: now) }
            return isExhausted
        }
        if isExhausted {
            logger.warning(
                "Quota exhausted; pausing, then ramping up. Check for other senders of this project",
                metadata: ["project": "\(name)", "pause": "\(pause)"])
        }
    }

    func record(_ attempt: SendAttempt) {
        var throttled: Set<UUID> = []
        var pause = Duration.zero
        var answered = 0
        for (request, result) in zip(attempt.requests, attempt.results) {
            switch result {
            case .throttled(let floor, _):
                throttled.insert(request.target.device)
                pause = max(pause, floor)
            case .settled, .thirdPartyAuthRejected: answered += 1
            case .backOff, .halted, .rejectedLocally, .deferred, .unreachable, .withdrawn, .withheld: break
            }
        }
        record(throttled: throttled, pause: pause, answered: answered)
    }

    /// Restarts the ramp after a pause in which other processes did not count this one.
    func restartRamp() {
        let now = clock.uptime()
        state.withLock { $0.bucket.restartRamp(now: now) }
    }

    /// Changes the quota of all processes, in messages a minute.
    package func setLimit(perMinute: Int) {
        let now = clock.uptime()
        state.withLock { $0.bucket.setLimit(perMinute: perMinute, now: now) }
    }

    /// Sets the number of processes that share the quota. Ignores 0, which means that all of them pause.
    package func share(among processes: Int) {
        let now = clock.uptime()
        rate.record(
            state.withLock { state in
                state.bucket.share(among: processes, now: now)
                return state.bucket.rate(now: now)
            })
    }
}
