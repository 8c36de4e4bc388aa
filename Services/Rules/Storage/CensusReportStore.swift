import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import ServiceConnections

struct CensusReportStore: Sendable {
    /// The number of reports that one query reads.
    private static let page = 200
    /// How far back the last report of a process is looked for.
    private static let horizon = Duration.seconds(300)
    /// How long a report stays that no counted interval needs.
    private static let minimumRetention = Duration.seconds(600)

    let pool: PostgresPool

    func keep(_ reports: [CensusReport], now: Timestamp) async throws {
        guard !reports.isEmpty else { return }
        // One row a report; its numbers of keys differ, so that arrays of them have no rectangle.
        try await Outage.ofDatabase {
            try await pool.transaction { transaction in
                for report in reports {
                    let oldest = report.at - .milliseconds(max(0, report.oldest ?? 0))
                    try await transaction.execute(
                        """
                        INSERT INTO rules.census_report
                            (service, process, received_at, sent_at, oldest_at, is_final, settled, retried,
                            dead_lettered)
                        VALUES (\(report.service), \(report.process), \(now.date), \(min(report.at, now).date),
                            \(min(oldest, now).date), \(report.isFinal), \(report.settled.bytes),
                            \(report.retried.bytes), \(report.deadLettered.bytes))
                        """)
                }
            }
        }
    }

    func processes(now: Timestamp) async throws -> [CensusEvidence.Process] {
        try await Outage.ofDatabase {
            try await pool.query(
                """
                SELECT DISTINCT ON (service, process) service, process, received_at, sent_at, oldest_at, is_final
                FROM rules.census_report WHERE received_at > \((now - Self.horizon).date)
                ORDER BY service, process, id DESC
                """
            ).map { row in
                CensusEvidence.Process(
                    service: try row.decode(String.self, at: 0), process: try row.decode(UUID.self, at: 1),
                    receivedAt: Timestamp(try row.decode(Date.self, at: 2)),
                    sentAt: Timestamp(try row.decode(Date.self, at: 3)),
                    oldestAt: Timestamp(try row.decode(Date.self, at: 4)), isFinal: try row.decode(Bool.self, at: 5))
            }
        }
    }

    /// Returns what the reports say about each notification.
    ///
    /// - Parameter start: no report before it is about one of them.
    func trails(of notifications: [UUID], since start: Timestamp) async throws -> [CensusTrail] {
        var trails = [CensusTrail](repeating: CensusTrail(), count: notifications.count)
        let indices = Dictionary(
            notifications.enumerated().map { (CensusKeys.key(of: $1), $0) }, uniquingKeysWith: { first, _ in first })
        var last: Int64 = 0
        while true {
            let rows = try await Outage.ofDatabase {
                try await pool.query(
                    """
                    SELECT id, service, received_at, settled, retried, dead_lettered FROM rules.census_report
                    WHERE received_at >= \(start.date) AND id > \(last)
                        AND (settled <> '' OR retried <> '' OR dead_lettered <> '')
                    ORDER BY id LIMIT \(Self.page)
                    """)
            }
            for row in rows {
                last = try row.decode(Int64.self, at: 0)
                let service = try row.decode(String.self, at: 1)
                let received = Timestamp(try row.decode(Date.self, at: 2))
                CensusKeys(bytes: try row.decode([UInt8].self, at: 4)).forEachKeyAndTime { key, until in
                    if let index = indices[key] { trails[index][service] = .retried(until: until) }
                }
                CensusKeys(bytes: try row.decode([UInt8].self, at: 5)).forEachKey { key in
                    if let index = indices[key] { trails[index][service] = .deadLettered }
                }
                CensusKeys(bytes: try row.decode([UInt8].self, at: 3)).forEachKey { key in
                    if let index = indices[key] { trails[index][service] = .settled(received) }
                }
            }
            guard rows.count == Self.page else { return trails }
        }
    }

    /// Deletes reports that no interval needs.
    func sweep(now: Timestamp) async throws {
        try await Outage.ofDatabase {
            _ = try await pool.execute(
                """
                DELETE FROM rules.census_report WHERE received_at < least(
                    \((now - Self.minimumRetention).date), (SELECT min(reports_from) FROM rules.census_interval))
                """)
        }
    }
}
