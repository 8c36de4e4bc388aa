import Logging
import Postgres
import PushProtocol
import ServiceKit
import ServiceLifecycle
import Synchronization

/// Decides about evidence when its time has come, and has the commands that follow published. Any number of processes
/// may judge: each lane is judged by one at a time. Runs until graceful shutdown.
struct EvidenceEvaluator: Service {
    /// How often it looks.
    static let pace = Duration.seconds(1)
    /// How long it is remembered how lanes fared: twice the day that tells what is usual.
    static let memory = Duration.seconds(2 * 86_400)
    /// How long it is remembered what was erased: longer than pushes are under way.
    static let erasureMemory = Duration.seconds(30 * 86_400)
    /// Between looks at what is only told or tidied, in rounds.
    private static let roundsBetweenFigures = 10
    private static let roundsBetweenTidying = 3600

    private let store: EvaluationStore
    private let retention: Duration
    private let publisher: CommandPublisher
    private let metrics = EvaluatorMetrics()
    private let tripped = TrippedGuards()
    private let now: @Sendable () async throws -> Timestamp
    private let logger: Logger

    /// - Parameters:
    ///   - retention: How long evidence is kept after it was decided about.
    ///   - now: The time that all processes share (``DatabaseClock``).
    init(
        store: EvaluationStore, retention: Duration, publisher: CommandPublisher,
        now: @escaping @Sendable () async throws -> Timestamp, logger: Logger
    ) {
        self.store = store
        self.retention = retention
        self.publisher = publisher
        self.now = now
        self.logger = logger
    }

    /// What readiness tells: which lanes' evidence is quarantined.
    var condition: Readiness.State { tripped.condition }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var round = 0
            var isTidying = false
            var trouble: String?
            while !Task.isCancelled {
                do {
                    let failure = try await failureOfLane()
                    if round.isMultiple(of: Self.roundsBetweenFigures) {
                        metrics.record(quarantined: try await store.quarantined())
                    }
                    if isTidying || round.isMultiple(of: Self.roundsBetweenTidying) { isTidying = try await tidy() }
                    round += 1
                    if let failure { throw failure }
                    if trouble != nil { logger.notice("Evidence is judged again") }
                    trouble = nil
                } catch is CancellationError {
                    return
                } catch {
                    if trouble == nil, !Task.isCancelled {
                        logger.warning("Evidence cannot be judged now; it waits", metadata: [LogKey.error: "\(error)"])
                    }
                    trouble = "\(error)"
                }
                // Cancelled: shutting down.
                guard (try? await Task.sleep(for: Self.pace)) != nil else { return }
            }
        }
    }

    /// Forgets a little of what is old; tells whether there may be more. Judgements never wait for it for long.
    func tidy() async throws -> Bool {
        let now = try await now()
        try await store.forgetPulses(before: now - Self.memory)
        try await store.forgetErasures(before: now - Self.erasureMemory)
        return try await store.forgetEvidence(before: now - retention)
    }

    /// Looks once at every lane and publishes the commands of approved evidence. A lane that fails stops no other lane.
    ///
    /// - Throws: the first failure, after all lanes and the publisher had their turn; an outage of the database at once.
    func evaluate() async throws {
        let (lanes, dead) = try await store.lanes()
        dead.report(because: DeadEvidence.unreadable, logger: logger)
        for lane in tripped.forget(allBut: lanes) { metrics.tellRest(of: lane) }
        var failure: (any Error)?
        for lane in lanes {
            do {
                try await evaluate(lane)
            } catch let error where error.stopsEverything {
                throw error
            } catch {
                failure = failure ?? LaneFailure(lane: lane, underlying: error)
            }
        }
        try await publisher.publishDue()
        if let failure { throw failure }
    }

    private func evaluate(_ lane: FeedbackRoute) async throws {
        while let report = try await store.evaluate(lane, now: try await now()) {
            report.dead.report(because: DeadEvidence.unreadable, logger: logger)
            logger.report(report)
            metrics.count(report)
            tripped.set(report.after, of: lane)
            guard report.hasMore else { return }
        }
    }

    /// Judges as ``judge()`` does. Returns the failure of a lane, so that metrics and deletions of the round still run.
    private func failureOfLane() async throws -> LaneFailure? {
        do { try await evaluate() } catch let failure as LaneFailure { return failure }
        return nil
    }

    private struct LaneFailure: Error, CustomStringConvertible {
        let lane: FeedbackRoute
        let underlying: any Error
        var description: String { "\(lane): \(underlying)" }
    }
}

extension Error {
    /// Whether it concerns every lane: the database is away, or the task was cancelled. A statement that took too long
    /// (57014) concerns one.
    fileprivate var stopsEverything: Bool {
        if self is CancellationError || Task.isCancelled { return true }
        guard let error = self as? PostgresError else { return false }
        return error.isOutage
    }
}

/// Which guards this process knows to be tripped.
final class TrippedGuards: Sendable {
    private let lanes = Mutex<[FeedbackRoute: Timestamp]>([:])

    init() {}

    func set(_ state: GuardState, of lane: FeedbackRoute) {
        lanes.withLock { lanes in
            switch state {
            case .atRest: lanes[lane] = nil
            case .tripped(let since, _): lanes[lane] = since
            }
        }
    }

    /// Forgets lanes that have nothing to judge and no tripped guard any more, and returns them.
    func forget(allBut known: [FeedbackRoute]) -> [FeedbackRoute] {
        lanes.withLock { lanes in
            let gone = Set(lanes.keys).subtracting(known)
            for lane in gone { lanes[lane] = nil }
            return gone.sorted()
        }
    }

    var condition: Readiness.State {
        let lanes = lanes.withLock { $0 }.sorted { $0.key < $1.key }
        guard !lanes.isEmpty else { return .holds }
        let names = lanes.map { "\($0.key) since \(RFC3339.string(from: $0.value.date))" }.joined(separator: ", ")
        return .degraded("invalidations are quarantined for \(names); see `pushctl feedback quarantine list`")
    }
}
