import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceConnections

/// Counts notifications by state, from the decision log.
struct CensusStore: Sendable {
    /// How long another process waits before it counts instead.
    static let lease = Duration.seconds(15)

    let pool: PostgresPool

    /// Takes or renews the lease. Returns whether this process counts.
    func lead(_ process: UUID, now: Timestamp) async throws -> Bool {
        try await Outage.ofDatabase {
            try await !pool.query(
                """
                INSERT INTO rules.census_lease AS lease (process, renewed_at) VALUES (\(process), \(now.date))
                ON CONFLICT (id) DO UPDATE SET process = EXCLUDED.process, renewed_at = EXCLUDED.renewed_at
                    WHERE lease.process = EXCLUDED.process OR lease.renewed_at < \((now - Self.lease).date)
                RETURNING id
                """
            ).isEmpty
        }
    }

    /// Ends the lease of this process.
    func release(_ process: UUID) async throws {
        try await Outage.ofDatabase {
            _ = try await pool.execute(
                "UPDATE rules.census_lease SET renewed_at = '-infinity' WHERE process = \(process)")
        }
    }

    /// Records the end of a round.
    func noteCounted(_ process: UUID, now: Timestamp) async throws {
        try await Outage.ofDatabase {
            _ = try await pool.execute(
                "UPDATE rules.census_lease SET counted_at = \(now.date) WHERE process = \(process)")
        }
    }

    /// Returns the intervals to count now: new ones, then those that are due again.
    func due(now: Timestamp) async throws -> [Timestamp] {
        try await Outage.ofDatabase {
            let last = try await pool.query(
                "SELECT max(start_at) FROM rules.census_interval WHERE start_at > '-infinity'"
            ).single(Date?.self)
            let again = try await pool.query(
                """
                SELECT start_at FROM rules.census_interval WHERE due_at <= \(now.date)
                ORDER BY due_at LIMIT \(CensusPlan.mostAgain)
                """
            ).map { Timestamp(try $0.decode(Date.self, at: 0)) }
            return CensusPlan.new(after: last.map(Timestamp.init), now: now) + again
        }
    }

    func count(_ start: Timestamp, now: Timestamp) async throws -> CensusInterval {
        let isSettled = now >= start + CensusPlan.interval + CensusPlan.recount
        return try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                // Compiling these statements takes longer than running them.
                try await transaction.execute("SET LOCAL jit = off")
                var interval = CensusInterval(start: start)
                var hasItems = false
                for row in try await transaction.query(CensusSQL.counts(start, withEvents: isSettled)) {
                    let app = try row.decode(String.self, at: 0)
                    let number = Int(try row.decode(Int64.self, at: 2))
                    if let state = try row.decode(String?.self, at: 1) {
                        interval.counts.append(CensusCount(app: app, state: state, number: number))
                    } else {
                        interval.open[app] = number
                        hasItems = true
                    }
                    hasItems = try row.decode(Bool.self, at: 3) || hasItems
                }
                guard hasItems else { return interval }
                interval.items = try await transaction.query(CensusSQL.items(start)).compactMap(CensusItem.init)
                for row in try await transaction.query(
                    "SELECT notification, state FROM rules.census_gap WHERE start_at = \(start.date)")
                {
                    interval.gaps[try row.decode(at: 0)] = CensusState(rawValue: try row.decode(String.self, at: 1))
                }
                return interval
            }
        }
    }

    /// Replaces the stored result of an interval.
    func write(_ result: CensusResult) async throws {
        let (start, gaps) = (result.start.date, result.gaps)
        try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                try await transaction.execute(
                    """
                    INSERT INTO rules.census_interval AS old (start_at, due_at, reports_from, evidence_until)
                    VALUES (\(start), \(result.dueAt.date), \(result.reportsFrom?.date),
                        coalesce(\(result.evidenceUntil?.date), '-infinity'))
                    ON CONFLICT (start_at) DO UPDATE SET due_at = EXCLUDED.due_at,
                        reports_from = EXCLUDED.reports_from,
                        evidence_until = greatest(old.evidence_until, EXCLUDED.evidence_until)
                    """)
                try await transaction.execute("DELETE FROM rules.census_count WHERE start_at = \(start)")
                try await transaction.execute(CensusSQL.insert(result.counts, result.start))
                try await transaction.execute(
                    """
                    DELETE FROM rules.census_gap
                    WHERE start_at = \(start) AND NOT notification = ANY(\(gaps.map(\.item.notification)))
                    """)
                try await transaction.execute(
                    """
                    INSERT INTO rules.census_gap (notification, start_at, app, state, event, decided_at, found_at)
                    SELECT notification, \(start), app, state, event, decided_at, \(result.countedAt.date) FROM unnest(
                        \(gaps.map(\.item.notification)), \(gaps.map(\.item.app.rawValue)),
                        \(gaps.map(\.state.rawValue)), \(gaps.map(\.item.event)), \(gaps.map(\.item.decidedAt.date))
                    ) AS new (notification, app, state, event, decided_at)
                    ON CONFLICT DO NOTHING
                    """)
            }
        }
    }

    /// Replaces the counts of states that have no interval.
    func writePresent(_ queued: [CensusCount]) async throws {
        try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                try await transaction.execute("DELETE FROM rules.census_count WHERE start_at = '-infinity'")
                try await transaction.execute(CensusSQL.insertPresent)
                try await transaction.execute(CensusSQL.insert(queued, nil))
            }
        }
    }

    /// Deletes intervals that count no more.
    func sweep(now: Timestamp) async throws {
        try await Outage.ofDatabase {
            let old: SQL = """
                start_at > '-infinity' AND start_at < \((now - CensusPlan.window).date)
                AND (start_at < \((now - CensusPlan.gapWindow).date) OR start_at NOT IN (
                    SELECT start_at FROM rules.census_interval AS open WHERE open.reports_from IS NOT NULL
                    UNION ALL SELECT start_at FROM rules.census_gap))
                """
            for table: SQL in ["census_count", "census_interval"] {
                try await pool.execute("DELETE FROM rules.\(table) WHERE \(old)")
            }
            try await pool.execute(
                "DELETE FROM rules.census_gap WHERE start_at < \((now - CensusPlan.gapWindow).date)")
        }
    }
}

extension CensusItem {
    /// Reads a row of ``CensusSQL/items(_:)``. `nil` for an app with an invalid name.
    fileprivate init?(_ row: PostgresRow) throws(PostgresError) {
        guard let app = AppID(rawValue: try row.decode(String.self, at: 1)) else { return nil }
        self.init(
            notification: try row.decode(UUID.self, at: 0), app: app, event: try row.decode(String.self, at: 2),
            decidedAt: Timestamp(try row.decode(Date.self, at: 3)),
            evidenceAt: try row.decode(Date?.self, at: 4).map(Timestamp.init),
            state: try row.decode(String?.self, at: 5).flatMap(CensusState.init),
            isUnpublished: try row.decode(Bool.self, at: 6), isDeadRow: try row.decode(Bool.self, at: 7))
    }
}
