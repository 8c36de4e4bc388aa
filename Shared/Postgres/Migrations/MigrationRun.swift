internal import Logging
internal import Primitives

/// One run of the migrator on a schema, over one connection.
struct MigrationRun {
    let connection: PostgresConnection
    let schema: String
    let lockTimeout: Duration
    let logger: Logger

    func apply(_ files: [MigrationFile]) async throws -> [MigrationFile] {
        // The advisory lock is held until the connection closes.
        try await retryingLocks(subject: schema) { try await lock() }
        try await createTable()
        let pending = try MigrationPlan.pending(files: files, applied: try await applied(), schema: schema)
        for file in pending {
            try await retryingLocks(subject: file.fileName) { try await apply(file) }
            logger.info("Migration applied", metadata: ["schema": "\(schema)", "file": "\(file.fileName)"])
        }
        return pending
    }

    func applied() async throws(PostgresError) -> [AppliedMigration] {
        guard try await rows(MigrationTable.exists(schema)).single(Bool.self) else { return [] }
        return try await rows(MigrationTable.all(schema)).map { row throws(PostgresError) in
            AppliedMigration(
                version: try row.decode(at: "version"), name: try row.decode(at: "name"),
                checksum: try row.decode(at: "checksum"))
        }
    }

    private func lock() async throws(PostgresError) {
        let key = "heliograph.migration.\(schema)"
        _ = try await rows("SELECT 1 FROM pg_advisory_lock(hashtextextended(\(key), 0))")
    }

    private func createTable() async throws(PostgresError) {
        // Checked first, because IF NOT EXISTS needs the right to create even if the object exists.
        if try await !rows(MigrationTable.schemaExists(schema)).single(Bool.self) {
            _ = try await rows(MigrationTable.createSchema(schema))
        }
        if try await !rows(MigrationTable.exists(schema)).single(Bool.self) {
            _ = try await rows(MigrationTable.create(schema))
        }
    }

    private func apply(_ file: MigrationFile) async throws {
        try await script("BEGIN", "BEGIN")
        do {
            let transaction = try await currentTransaction()
            let start = ContinuousClock.now
            try await script(file.script, file.fileName)
            guard await connection.isInTransaction, try await currentTransaction() == transaction else {
                throw MigrationError(
                    code: .failed, subject: file.fileName,
                    detail: "the file ends its transaction; remove COMMIT or ROLLBACK, and check which statements were "
                        + "applied")
            }
            _ = try await rows(MigrationTable.record(file, duration: .now - start, in: schema))
            try await script("COMMIT", "COMMIT")
        } catch {
            // Reports the first error; if the rollback fails, closing the connection rolls back.
            try? await script("ROLLBACK", "ROLLBACK")
            throw error
        }
    }

    private func currentTransaction() async throws(PostgresError) -> String {
        try await rows("SELECT pg_current_xact_id()::text").single(String.self)
    }

    /// Repeats `step` while it fails with `lock_not_available`.
    private func retryingLocks(subject: String, _ step: () async throws -> Void) async throws {
        let deadline = ContinuousClock.now + lockTimeout
        var failures = 0
        while true {
            do {
                return try await step()
            } catch let error as PostgresError {
                guard error.code == .sqlState("55P03") else {
                    throw MigrationError(code: .failed, subject: subject, detail: "\(error)")
                }
                failures += 1
                let delay = Backoff.migrationLock.delay(afterFailures: failures, jitter: .equal)
                guard .now + delay < deadline else {
                    throw MigrationError(
                        code: .locked, subject: subject,
                        detail: "a lock was not free for \(lockTimeout): another migrator is running, or a long "
                            + "transaction holds the table (see pg_locks)")
                }
                logger.info("Waiting for a lock", metadata: ["schema": "\(schema)", "subject": "\(subject)"])
                try await Task.sleep(for: delay)
            }
        }
    }

    private func rows(_ sql: SQL) async throws(PostgresError) -> [PostgresRow] {
        let result = try await attempt { connection throws(PostgresError) in try connection.run(sql) }
        guard let result else {
            throw PostgresError(.connectionLost, operation: "migrate", detail: "the server closed the connection")
        }
        return result.rows
    }

    private func script(_ text: String, _ operation: String) async throws(PostgresError) {
        _ = try await attempt { connection throws(PostgresError) in
            try connection.run(script: text, operation: operation)
        }
    }

    private func attempt<R: Sendable>(
        _ work: @Sendable (isolated PostgresConnection) throws(PostgresError) -> R
    ) async throws(PostgresError) -> R {
        let connection = connection
        return try await withTaskCancellationHandler {
            await connection.attempt(work)
        } onCancel: {
            connection.interrupt()
        }.get()
    }
}
