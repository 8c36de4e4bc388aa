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
    /// The retention of route health reports: twice the day from which the normal share is computed.
    static let routeHealthRetention = Duration.seconds(2 * 86_400)
    /// The retention of erasures, which exceeds the lifetime of any push.
    static let erasureRetention = Duration.seconds(30 * 86_400)
    /// Rounds between updates of gauges, and between deletions of old rows.
    private static let roundsBetweenGauges = 10
    private static let roundsBetweenDeletions = 3600

    private let store: EvaluationStore
    private let retention: Duration
    private let publisher: CommandPublisher
    private let metrics = EvaluatorMetrics()
    private let tripped = TrippedGuards()
    private let now: @Sendable () async throws -> Timestamp
    private let logger: Logger

    /// - Parameters:
    ///   - retention: The retention of evidence after its decision.
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

    /// The readiness condition: degraded while a guard is tripped, with the names of its routes.
    var condition: Readiness.State { tripped.condition }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var round = 0
            var hasMoreToDelete = false
            var lastFailure: String?
            while !Task.isCancelled {
                do {
                    let failure = try await failureOfLane()
                    if round.isMultiple(of: Self.roundsBetweenGauges) {
                        metrics.record(quarantined: try await store.quarantined())
                    }
                    if hasMoreToDelete || round.isMultiple(of: Self.roundsBetweenDeletions) {
                        hasMoreToDelete = try await deleteOldRows()
                    }
                    round += 1
                    if let failure { throw failure }
                    if lastFailure != nil { logger.notice("Evaluating evidence again") }
                    lastFailure = nil
                } catch is CancellationError {
                    return
                } catch {
                    if lastFailure == nil, !Task.isCancelled {
                        logger.warning("Evaluating evidence failed; retrying", metadata: [LogKey.error: "\(error)"])
                    }
                    lastFailure = "\(error)"
                }
                // Cancelled: shutting down.
                guard (try? await Task.sleep(for: Self.pace)) != nil else { return }
            }
        }
    }

    /// Deletes one batch of old rows, so that evaluation is not delayed.
    ///
    /// - Returns: Whether more old evidence may remain.
    func deleteOldRows() async throws -> Bool {
        let now = try await now()
        try await store.deleteRouteHealth(before: now - Self.routeHealthRetention)
        try await store.deleteErasures(before: now - Self.erasureRetention)
        return try await store.deleteEvidence(before: now - retention)
    }

    /// Evaluates every route once and publishes the commands of approved evidence. A failing route stops no other.
    ///
    /// - Throws: The first failure of a route, after all routes and the publisher ran; a database outage at once.
    func evaluate() async throws {
        let (routes, dead) = try await store.routes()
        dead.report(because: DeadEvidence.unreadable, logger: logger)
        for route in tripped.forget(allBut: routes) { metrics.recordReset(of: route) }
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

    private func evaluate(_ route: FeedbackRoute) async throws {
        while let report = try await store.evaluate(route, now: try await now()) {
            report.dead.report(because: DeadEvidence.unreadable, logger: logger)
            logger.report(report)
            metrics.count(report)
            tripped.set(report.after, of: route)
            guard report.hasMore else { return }
        }
    }

    /// Calls ``evaluate()``. Returns a route's failure, so that the round's metrics and deletions still run.
    private func failureOfLane() async throws -> RouteFailure? {
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

/// The tripped guards, as this process last read them.
final class TrippedGuards: Sendable {
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

    /// Removes all routes but `known`, and returns the removed ones.
    func forget(allBut known: [FeedbackRoute]) -> [FeedbackRoute] {
        routes.withLock { routes in
            let gone = Set(routes.keys).subtracting(known)
            for route in gone { routes[route] = nil }
            return gone.sorted()
        }
    }

    var condition: Readiness.State {
        let routes = routes.withLock { $0 }.sorted { $0.key < $1.key }
        guard !routes.isEmpty else { return .holds }
        let names = routes.map { "\($0.key) since \(RFC3339.string(from: $0.value.date))" }.joined(separator: ", ")
        return .degraded("evidence is quarantined for \(names); see `pushctl feedback quarantine list`")
    }
}
