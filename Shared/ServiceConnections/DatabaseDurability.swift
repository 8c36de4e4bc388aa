import Postgres

/// The database server's settings that decide whether a committed row survives a crash and a failover.
///
/// A service acknowledges a message once its rows are committed; the broker then deletes it. Rows that the server loses
/// afterwards are lost permanently. deploy/operations/postgres.md lists the settings for production.
struct DatabaseDurability: Hashable {
    /// Whether commits are flushed to disk.
    var fsync: Bool
    /// Whether torn pages can be restored after a crash.
    var fullPageWrites: Bool
    /// The setting of this service's own sessions: `off`, `local`, `remote_write`, `on` or `remote_apply`.
    var synchronousCommit: String
    /// The standbys that a commit waits for; empty for none.
    var synchronousStandbyNames: String
    /// The number of WAL receivers now: standbys, and tools such as pg_receivewal.
    var receivers: Int

    /// The query. Any role may run it: `pg_stat_replication` counts all rows, without their details.
    static let query: SQL = """
        SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
               current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
               (SELECT count(*) FROM pg_stat_replication)
        """

    static func read(_ pool: PostgresPool) async throws(PostgresError) -> DatabaseDurability {
        guard let row = try await pool.query(query).first else {
            throw PostgresError(.decoding, operation: "read the settings", detail: "expected one row, found none")
        }
        return try DatabaseDurability(row)
    }

    /// The settings that can lose a committed row, one sentence each.
    var risks: [String] {
        var risks: [String] = []
        if !fsync { risks.append("fsync is off: a crash of the database server can lose or damage everything") }
        if !fullPageWrites { risks.append("full_page_writes is off: a crash of the server can damage its tables") }
        if synchronousCommit == "off" {
            risks.append("synchronous_commit is off: a crash of the database server loses the last commits")
        }
        if !waitsForStandbys, !synchronousStandbyNames.isEmpty || receivers > 0 {
            risks.append(
                "no commit waits for a standby (synchronous_commit = \(synchronousCommit), synchronous_standby_names "
                    + "\(synchronousStandbyNames.isEmpty ? "is empty" : "is set")): a failover loses the last commits")
        }
        return risks
    }

    private var waitsForStandbys: Bool {
        !synchronousStandbyNames.isEmpty && ["remote_write", "on", "remote_apply"].contains(synchronousCommit)
    }
}

extension DatabaseDurability {
    /// Creates the settings from a row of ``query``.
    init(_ row: PostgresRow) throws(PostgresError) {
        self.init(
            fsync: try row.decode(at: 0), fullPageWrites: try row.decode(at: 1),
            synchronousCommit: try row.decode(at: 2), synchronousStandbyNames: try row.decode(at: 3),
            receivers: try row.decode(at: 4))
    }
}
