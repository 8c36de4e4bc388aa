import Postgres

/// The settings of the database server that decide whether a committed row survives a crash and a failover.
///
/// A service acknowledges a message once its rows are committed. Rows that the server loses later are lost permanently: the
/// broker has no copy any more. deploy/operations/postgres.md says what production needs.
struct DatabaseDurability: Hashable {
    /// Whether a commit waits for the disk's word at all.
    var fsync: Bool
    /// Whether a page that a crash tore can be put together again.
    var fullPageWrites: Bool
    /// The setting of this service's own sessions: `off`, `local`, `remote_write`, `on` or `remote_apply`.
    var synchronousCommit: String
    /// Which standbys a commit waits for; empty for none.
    var synchronousStandbyNames: String
    /// How many processes receive the server's write-ahead log now: standbys, and tools that copy it.
    var receivers: Int

    /// Any role may ask this: `pg_stat_replication` shows others' rows without their details.
    static let question: SQL = """
        SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
               current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
               (SELECT count(*) FROM pg_stat_replication)
        """

    static func read(_ pool: PostgresPool) async throws(PostgresError) -> DatabaseDurability {
        guard let row = try await pool.query(question).first else {
            throw PostgresError(.decoding, operation: "read the settings", detail: "expected one row, found none")
        }
        return try DatabaseDurability(row)
    }

    /// The settings that can lose a committed row, one sentence each; empty when there are none.
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
    /// The answer to ``question``.
    init(_ row: PostgresRow) throws(PostgresError) {
        self.init(
            fsync: try row.decode(at: 0), fullPageWrites: try row.decode(at: 1),
            synchronousCommit: try row.decode(at: 2), synchronousStandbyNames: try row.decode(at: 3),
            receivers: try row.decode(at: 4))
    }
}
