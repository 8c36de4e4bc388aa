import FeedbackStore
import Logging
import Postgres
import PushProtocol
import ServiceKit
import ServiceLifecycle
import Synchronization

/// Evaluates due evidence and publishes the commands of approved evidence, until graceful shutdown.
///
/// Any number of processes may run it. A database lock gives each route to one process at a time.
struct EvidenceEvaluator: Service {
    /// The pause between rounds.
    static let pace = Duration.seconds(1)
    /// The retention of route health reports. ``GuardRule`` computes a route's normal share of rejections from one day
    /// of them; the second day is a reserve for late evaluations.
    static let routeHealthRetention = Duration.seconds(2 * 86_400)
    /// The retention of erasures. No push lives as long, so no outcome of an erased user arrives later.
    static let erasureRetention = Duration.seconds(30 * 86_400)
    /// Rounds between updates of gauges, and between deletions of old rows.
    private static let roundsBetweenGauges = 10
    private static let roundsBetweenDeletions = 3600

    private let store: EvaluationStore
    private let evidenceRetention: Duration
    private let publisher: CommandPublisher
    private let metrics = EvaluatorMetrics()
    private let trippedGuards = TrippedGuards()
    private let now: @Sendable () async throws -> Timestamp
    private let logger: Logger

    /// - Parameter now: The time that all processes share (``DatabaseClock``).
    init(
        store: EvaluationStore, evidenceRetention: Duration, publisher: CommandPublisher,
        now: @escaping @Sendable () async throws -> Timestamp, logger: Logger
    ) {
        self.store = store
        self.evidenceRetention = evidenceRetention
        self.publisher = publisher
        self.now = now
        self.logger = logger
    }

    /// The readiness condition. Degraded while the guard of a route is tripped; names these routes.
    var condition: Readiness.State { trippedGuards.condition }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var round = 0
            var hasMoreToDelete = false
            var hasFailed = false
            while !Task.isCancelled {
                do {
                    let failure = try await evaluateRound()
                    if round.isMultiple(of: Self.roundsBetweenGauges) {
                        metrics.record(quarantined: try await store.quarantined())
                    }
                    if hasMoreToDelete || round.isMultiple(of: Self.roundsBetweenDeletions) {
                        hasMoreToDelete = try await deleteOldRows()
                    }
                    round += 1
                    if let failure { throw failure }
                    if hasFailed { logger.notice("Evaluating evidence again") }
                    hasFailed = false
                } catch is CancellationError {
                    return
                } catch {
                    // One log line for a series of failed rounds.
                    if !hasFailed, !Task.isCancelled {
                        logger.warning("Evaluating evidence failed; retrying", metadata: [LogKey.error: "\(error)"])
                    }
                    hasFailed = true
                }
                // Cancelled: shutting down.
                guard (try? await Task.sleep(for: Self.pace)) != nil else { return }
            }
        }
    }

    /// Deletes old route health reports, old erasures and one batch of old evidence. Evidence has many rows; one batch
    /// a round delays no evaluation.
    ///
    /// - Returns: Whether more old evidence may remain.
    func deleteOldRows() async throws -> Bool {
        let now = try await now()
        try await store.deleteRouteHealth(before: now - Self.routeHealthRetention)
        try await store.deleteErasures(before: now - Self.erasureRetention)
        return try await store.deleteEvidence(before: now - evidenceRetention)
    }

    /// Evaluates every route once and publishes the commands of approved evidence. A failing route stops no other.
    ///
    /// - Throws: The first failure of a route, after all routes and the publisher ran; a database outage at once.
    func evaluate() async throws {
        let (routes, deadEvidence) = try await store.routes()
        deadEvidence.countAndLog(because: DeadEvidence.unreadable, logger: logger)
        // The store returns every route with a tripped guard. Another process has reset the guards of the others.
        for route in trippedGuards.removeAll(except: routes) { metrics.recordReset(of: route) }
        var failure: (any Error)?
        for route in routes {
            do {
                try await evaluate(route)
            } catch let error where error.stopsEverything {
                throw error
            } catch {
                failure = failure ?? RouteFailure(route: route, underlying: error)
            }
        }
        try await publisher.publishDue()
        if let failure { throw failure }
    }

    /// Evaluates the route's evidence batch by batch, until nothing is due or another process has locked the route.
    private func evaluate(_ route: FeedbackRoute) async throws {
        while let report = try await store.evaluate(route, now: try await now()) {
            report.deadEvidence.countAndLog(because: DeadEvidence.unreadable, logger: logger)
            logger.logGuardChange(in: report)
            metrics.record(report)
            trippedGuards.set(report.guardAfter, of: route)
            guard report.hasMore else { return }
        }
    }

    /// Calls ``evaluate()``. Returns the failure of a route instead of throwing it, so that the round continues with
    /// metrics and deletions.
    private func evaluateRound() async throws -> RouteFailure? {
        do { try await evaluate() } catch let failure as RouteFailure { return failure }
        return nil
    }

    private struct RouteFailure: Error, CustomStringConvertible {
        let route: FeedbackRoute
        let underlying: any Error
        var description: String { "\(route): \(underlying)" }
    }
}

extension Error {
    /// Whether the error concerns all routes: a database outage or cancellation. A statement timeout (SQLSTATE 57014)
    /// concerns one route.
    fileprivate var stopsEverything: Bool {
        if self is CancellationError || Task.isCancelled { return true }
        guard let error = self as? PostgresError else { return false }
        return error.isOutage
    }
}

/// The routes whose guard (``GuardRule``) is tripped, as this process last read them.
final class TrippedGuards: Sendable {
    /// Each route with the start of its quarantine.
    private let routes = Mutex<[FeedbackRoute: Timestamp]>([:])

    init() {}

    func set(_ state: GuardState, of route: FeedbackRoute) {
        routes.withLock { routes in
            switch state {
            case .atRest: routes[route] = nil
            case .tripped(let since, _): routes[route] = since
            }
        }
    }

    func removeAll(except known: [FeedbackRoute]) -> [FeedbackRoute] {
        routes.withLock { routes in
            let removed = Set(routes.keys).subtracting(known)
            for route in removed { routes[route] = nil }
            return removed.sorted()
        }
    }

    /// The readiness condition of ``EvidenceEvaluator/condition``.
    var condition: Readiness.State {
        let routes = routes.withLock { $0 }.sorted { $0.key < $1.key }
        guard !routes.isEmpty else { return .holds }
        let names = routes.map { "\($0.key) since \(RFC3339.string(from: $0.value.date))" }.joined(separator: ", ")
        return .degraded("evidence is quarantined for \(names); see `pushctl feedback quarantine list`")
    }
}
