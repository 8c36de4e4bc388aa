import FoundationEssentials
import Logging
import Metrics
import PushProtocol
import ServiceKit
import ServiceLifecycle

/// Deletes expired rows, tombstones and recordings. Any number of processes may run it. Runs until graceful shutdown.
struct Sweeper: Service {
    static let pace = Duration.seconds(600)
    /// The pause between two steps, which limits the load.
    static let defaultPause = Duration.milliseconds(200)

    let tombstones: TombstoneStore
    let history: HistoryStore
    let terms: HistoryTerms
    /// Deletes recordings; `nil`: does not.
    var recordings: RecordingSweep?
    var pause = Sweeper.defaultPause
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    let logger: Logger

    func run() async throws {
        await PeriodicTask(
            every: Self.pace, failureMessage: "Cannot delete expired rows; retrying",
            recoveryMessage: "Deleting expired rows again",
            logger: logger
        ).run { try await sweep() }
    }

    /// Sweeps every table once. A row or a table that cannot be swept does not block the others, and is retried after
    /// ``pace``.
    ///
    /// - Throws: the first failure, after everything else is swept.
    func sweep() async throws {
        var failure: (any Error)?
        do { try await sweepTombstones(&failure) } catch let error where error.isCausedByRows {
            failure = failure ?? error
        }
        for table in HistoryStore.Table.allCases {
            do {
                guard try await sweep(table, &failure) else { break }
            } catch let error where error.isCausedByRows {
                failure = failure ?? error
            }
        }
        do { try await sweepRecordings() } catch let error where error.isCausedByRows {
            failure = failure ?? error
        }
        if let failure { throw failure }
    }

    /// The recordings and how long each app keeps them.
    struct RecordingSweep: Sendable {
        let store: RecordingStore
        let terms: @Sendable () -> [AppID: RecordingTerms]
    }

    private func sweepRecordings() async throws {
        guard let recordings else { return }
        var isMore = true
        while isMore {
            let swept = try await recordings.store.sweep(recordings.terms(), now: try await now())
            tell(swept.deleted, "recording")
            isMore = swept.isMore
            try await Task.sleep(for: pause)
        }
    }

    private func sweepTombstones(_ failure: inout (any Error)?) async throws {
        var swept = TombstoneStore.Swept(isMore: true)
        while swept.isMore {
            swept = try await tombstones.sweep(now: try await now(), passingOver: swept.failed)
            for (table, count) in swept.deleted { tell(count, table) }
            failure = failure ?? swept.failure
            try await Task.sleep(for: pause)
        }
        for (table, rows) in swept.failed { warn(rows.count, table, failure) }
    }

    /// - Returns: `false` if another process is deleting.
    private func sweep(_ table: HistoryStore.Table, _ failure: inout (any Error)?) async throws -> Bool {
        var place: Date?
        repeat {
            guard let step = try await history.advance(table, after: place, terms, now: try await now()) else {
                return false
            }
            tell(step.deleted, table.rawValue)
            if let error = step.failure {
                failure = failure ?? error
                warn(step.failed, table.rawValue, error)
            }
            place = step.place
            try await Task.sleep(for: pause)
        } while place != nil
        return true
    }

    private func warn(_ count: Int, _ table: String, _ error: (any Error)?) {
        guard count > 0 else { return }
        logger.warning(
            "Old rows cannot be deleted; retrying in \(Self.pace)",
            metadata: [
                LogKey.table: "rules.\(table)", LogKey.count: "\(count)",
                LogKey.error: "\(error.map { "\($0)" } ?? "-")",
            ])
    }

    private func tell(_ count: Int, _ table: String) {
        guard count > 0 else { return }
        Counter(label: "heliograph_rules_deleted_rows_total", dimensions: [("table", table)]).increment(by: count)
    }
}
