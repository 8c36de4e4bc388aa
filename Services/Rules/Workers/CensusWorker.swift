import DecisionLog
import FoundationEssentials
import Logging
import Messaging
import Metrics
import PushProtocol
import ServiceConnections
import ServiceKit
import ServiceLifecycle

/// Counts the notifications in each state, and names the stage of missing ones. Runs until graceful shutdown.
///
/// Any number of processes may run it: one counts, and all of them export the same numbers.
actor CensusWorker: Service {
    /// The pause between two rounds; longer if a round takes long, so that counting takes at most a tenth of the time.
    static let pace = Duration.seconds(3)
    static let share = 10
    /// The pause between two counts of held notifications and of the broker's queues.
    static let presentPace = Duration.seconds(30)

    private let store: CensusStore
    private let reports: CensusReportStore
    private let table: CensusTable
    private let apps: ActiveApps
    /// Reads a queue at the broker; `nil` if the broker has no such queue.
    private let probe: @Sendable (WorkQueue, _ isDead: Bool) async throws -> (messages: Int, consumers: Int)?
    /// The time that processes share (``DatabaseClock``).
    private let now: @Sendable () async throws -> Timestamp
    private let logger: Logger

    private let process = UUID()
    private var evidence = CensusEvidence()
    private var presentAt: Timestamp?
    private var exported: Set<Labels> = []
    private var known: Set<UUID> = []

    private struct Labels: Hashable {
        var app: String
        var state: String

        var dimensions: [(String, String)] { [("app", app), ("state", state)] }
    }

    init(
        store: CensusStore, reports: CensusReportStore, table: CensusTable, apps: ActiveApps,
        probe: @escaping @Sendable (WorkQueue, Bool) async throws -> (messages: Int, consumers: Int)?,
        now: @escaping @Sendable () async throws -> Timestamp, logger: Logger
    ) {
        self.store = store
        self.reports = reports
        self.table = table
        self.apps = apps
        self.probe = probe
        self.now = now
        self.logger = logger
    }

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot count notifications for the census; retrying",
            recoveryMessage: "Counting notifications for the census again", logger: logger
        ).runWithOwnPauses {
            let start = ContinuousClock.now
            try await self.advance()
            return max(Self.pace, (ContinuousClock.now - start) * (Self.share - 1))
        }
        // Another process continues at once.
        try? await store.release(process)
    }

    /// Counts the due intervals, if this process has the lease, and exports the numbers.
    func advance() async throws {
        var failure: (any Error)?
        if try await store.lead(process, now: try await now()) {
            evidence.add(try await reports.processes(now: try await now()), now: try await now())
            var open: Set<AppID> = []
            for start in try await store.due(now: try await now()) where !Task.isCancelled {
                guard try await store.lead(process, now: try await now()) else { break }
                do { open.formUnion(try await count(start)) } catch let error where error.isCausedByRows {
                    failure = failure ?? error
                    logger.warning(
                        "Cannot count an interval of the census; retrying",
                        metadata: ["interval": "\(start)", LogKey.error: "\(error)"])
                }
            }
            try await probe(stagesOf: open)
            try await countPresent()
            try await store.noteCounted(process, now: try await now())
        }
        export(try await Outage.ofDatabase { try await table.read(app: nil) })
        if let failure { throw failure }
    }

    /// Counts one interval. Returns the apps with open notifications.
    private func count(_ start: Timestamp) async throws -> Set<AppID> {
        let clock = ContinuousClock.now
        let now = try await now()
        let interval = try await store.count(start, now: now)
        let items = interval.itemsToPlace(now: now)
        var trails: [UUID: CensusTrail] = [:]
        if let oldest = items.map(\.decidedAt).min() {
            let ids = items.map(\.notification)
            let found = try await reports.trails(of: ids, since: oldest - CensusPlan.interval)
            trails = Dictionary(zip(ids, found)) { first, _ in first }
        }
        var result = CensusResult(interval, trails, by: CensusClassifier(evidence: evidence, now: now))
        result.dueAt = CensusPlan.due(start, isOpen: result.isOpen, elapsed: .now - clock, now: now)
        try await store.write(result)
        report(result)
        return Set(items.map(\.app))
    }

    /// Looks at the queues that open notifications may be in.
    private func probe(stagesOf apps: Set<AppID>) async throws {
        let passages = apps.flatMap { app in CensusStage.allCases.flatMap { $0.passages(of: app) } }.joined()
        for queue in Set(passages.flatMap(\.queues)) {
            let at = try await now()
            // A queue that does not exist contains nothing.
            let status = try await probe(queue, false) ?? (0, 0)
            evidence.add(
                CensusEvidence.Probe(at: at, messages: status.messages, consumers: status.consumers), of: queue)
        }
    }

    /// Counts events at the broker, and the states that only other tables know.
    private func countPresent() async throws {
        let now = try await now()
        if let presentAt, now - presentAt < Self.presentPace { return }
        var queued: [CensusCount] = []
        for (app, queue) in [("-", WorkQueue.rulesEvents)] + apps.sorted.map({ ($0.rawValue, .rulesAppEvents($0)) }) {
            for (isDead, state) in [(false, CensusState.queued), (true, .deadLetter)] {
                let messages = try await probe(queue, isDead)?.messages ?? 0
                if messages > 0 {
                    queued.append(CensusCount(app: app, state: state.rawValue, number: messages))
                }
            }
        }
        try await store.writePresent(queued)
        try await store.sweep(now: now)
        try await reports.sweep(now: now)
        presentAt = now
    }

    private func report(_ result: CensusResult) {
        for gap in result.gaps where known.insert(gap.item.notification).inserted {
            logger.error(
                "A notification is missing; pushctl census names the stage",
                metadata: [
                    LogKey.app: "\(gap.item.app)",
                    LogKey.notification: "\(Hexadecimal.text(of: gap.item.notification))",
                    "state": "\(gap.state.rawValue)", LogKey.correlation: "\(gap.item.event)",
                ])
        }
        if known.count > 10_000 { known = [] }
    }

    private func export(_ census: Census) {
        var present: Set<Labels> = []
        for row in census.rows {
            let labels = Labels(app: row.app, state: row.state)
            present.insert(labels)
            Gauge(label: "heliograph_census", dimensions: labels.dimensions).record(row.number)
            Gauge(label: "heliograph_census_oldest_seconds", dimensions: labels.dimensions).record(
                max(0, row.oldestAt.map { census.at.timeIntervalSince($0) } ?? 0))
        }
        for labels in exported.subtracting(present) {
            Gauge(label: "heliograph_census", dimensions: labels.dimensions).record(0)
            Gauge(label: "heliograph_census_oldest_seconds", dimensions: labels.dimensions).record(0)
        }
        exported.formUnion(present)
        if let countedAt = census.countedAt {
            Gauge(label: "heliograph_census_age_seconds").record(max(0, census.at.timeIntervalSince(countedAt)))
        }
    }
}
