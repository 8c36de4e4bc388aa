internal import FoundationEssentials
package import Logging
internal import Metrics
package import PushProtocol
internal import ServiceLifecycle
internal import Synchronization

/// The quota of one project, shared by all pushes in hand: the shell around ``TokenBucket``.
package final class QuotaGate: Sendable {
    /// The longest a push waits in hand; then it waits on the bus. A batch of pushes must be settled well within the
    /// half hour after which the broker takes an unsettled delivery for lost.
    static let patience = Duration.seconds(150)
    /// The longest a probe waits: all other pushes of its lane wait for its report.
    static let patienceOfProbes = Duration.seconds(1)

    enum Admission: Hashable, Sendable {
        /// Send to so many targets, at least one.
        case granted(Int)
        /// Not within the push's patience: leave it for so long.
        case later(Duration)
    }

    private struct State {
        var bucket: TokenBucket
        var refusals = QuotaRefusals()
    }

    /// Whose the quota is, such as a project's id: a label and a word for logs.
    private let name: String
    private let clock: SenderClock
    private let logger: Logger
    private let rate: Gauge
    private let state: Mutex<State>

    /// - Parameters:
    ///   - name: of the project that a configured credential is of; labels the gauge `heliograph_push_quota_rate`.
    ///   - perMinute: what all processes together may send.
    package init(_ name: String, provider: Provider, perMinute: Int, clock: SenderClock = .system, logger: Logger) {
        self.name = name
        self.clock = clock
        self.logger = logger
        rate = Gauge(
            label: "heliograph_push_quota_rate", dimensions: [("provider", provider.rawValue), ("project", name)])
        state = Mutex(State(bucket: TokenBucket(perMinute: perMinute, now: clock.uptime())))
    }

    /// Until when a push that is taken up now may wait.
    var deadline: Duration { clock.uptime() + Self.patience }
    var probeDeadline: Duration { clock.uptime() + Self.patienceOfProbes }

    /// Asks to send to `wanted` targets, and waits for its turn until `deadline`, cancellation or shutdown.
    func admit(_ wanted: Int, _ lane: Lane, until deadline: Duration) async -> Admission {
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

    /// Takes note of what came of targets that were sent together.
    ///
    /// - Parameters:
    ///   - refused: the devices that were refused for their rate.
    ///   - pause: the longest wait that the provider asked for.
    ///   - answered: how many targets the provider answered otherwise.
    func note(refused devices: Set<UUID>, pause: Duration, answered: Int) {
        guard !devices.isEmpty || answered > 0 else { return }
        let now = clock.uptime()
        let isOurs = state.withLock { state in
            let isOurs = state.refusals.note(refused: devices, answered: answered)
            if isOurs { state.bucket.refused(for: pause, now: now) }
            return isOurs
        }
        if isOurs {
            logger.warning(
                "the quota is used up: nothing is sent for a while, and then slowly more; is somebody else sending?",
                metadata: ["project": "\(name)", "pause": "\(pause)"])
        }
    }

    /// Takes note of what became of a round.
    func note(_ round: PushRound) {
        var refused: Set<UUID> = []
        var pause = Duration.zero
        var answered = 0
        for (copy, answer) in zip(round.copies, round.answers) {
            switch answer {
            case .throttled(let floor, _):
                refused.insert(copy.target.device)
                pause = max(pause, floor)
            case .settled, .thirdPartyHalted: answered += 1
            case .backOff, .halted, .refusedHere, .deferred, .unreachable, .withdrawn, .withheld: break
            }
        }
        note(refused: refused, pause: pause, answered: answered)
    }

    /// After a pause in which this process was not among those that share the quota.
    func beginSlowly() {
        let now = clock.uptime()
        state.withLock { $0.bucket.beginSlowly(now: now) }
    }

    /// Sets anew what all processes together may send, in messages a minute.
    package func allow(perMinute: Int) {
        let now = clock.uptime()
        state.withLock { $0.bucket.allow(perMinute: perMinute, now: now) }
    }

    /// Takes note of how many processes were seen to share the quota; none, where all of them pause.
    package func share(among processes: Int) {
        let now = clock.uptime()
        rate.record(
            state.withLock { state in
                state.bucket.share(among: processes, now: now)
                return state.bucket.rate(now: now)
            })
    }
}
