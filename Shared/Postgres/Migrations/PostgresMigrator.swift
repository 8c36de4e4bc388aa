package import Logging

/// Applies the migrations of a directory, `NNNN_name.sql`, to a schema; in order, forward only.
///
/// Each file runs in one transaction with its row in `<schema>.migration`. An advisory lock admits one migrator at a
/// time. Waits for table locks are short and repeated, because other statements queue behind a waiting `ALTER TABLE`.
/// Uses its own connection, which must not go through a pooler in transaction mode.
package enum PostgresMigrator {
    /// Applies pending migrations; creates the schema and its table if missing.
    ///
    /// - Parameters:
    ///   - statementTimeout: the time-out of each file.
    ///   - lockTimeout: the longest wait for another migrator, and for each file's locks.
    /// - Returns: the migrations applied by this call.
    @discardableResult
    package static func migrate(
        schema: String, directory: String, configuration: PostgresConfiguration, logger: Logger,
        statementTimeout: Duration = .seconds(600), lockTimeout: Duration = .seconds(60)
    ) async throws -> [MigrationFile] {
        let files = try MigrationFile.read(directory: directory)
        var configuration = configuration
        configuration.statementTimeout = statementTimeout
        configuration.lockTimeout = .seconds(2)
        return try await withConnection(configuration, logger: logger) { connection in
            let run = MigrationRun(connection: connection, schema: schema, lockTimeout: lockTimeout, logger: logger)
            return try await run.apply(files)
        }
    }

    /// Returns the pending migrations, in order. Changes nothing.
    package static func pending(
        schema: String, directory: String, configuration: PostgresConfiguration, logger: Logger
    ) async throws -> [MigrationFile] {
        let files = try MigrationFile.read(directory: directory)
        return try await withConnection(configuration, logger: logger) { connection in
            let run = MigrationRun(connection: connection, schema: schema, lockTimeout: .zero, logger: logger)
            return try MigrationPlan.pending(files: files, applied: try await run.applied(), schema: schema)
        }
    }

    /// Returns the number of the last migration applied to `schema`, 0 if there is none. Services compare it at the
    /// start with the version that they need.
    package static func currentVersion(schema: String, pool: PostgresPool) async throws(PostgresError) -> Int {
        guard try await pool.query(MigrationTable.exists(schema)).single(Bool.self) else { return 0 }
        return try await pool.query(MigrationTable.currentVersion(schema)).single(Int.self)
    }

    private static func withConnection<R: Sendable>(
        _ configuration: PostgresConfiguration, logger: Logger,
        _ body: (PostgresConnection) async throws -> R
    ) async throws -> R {
        let connection = PostgresConnection(configuration: configuration, logger: logger)
        try await connection.open()
        do {
            let result = try await body(connection)
            await connection.close()
            return result
        } catch {
            await connection.close()
            throw error
        }
    }
}

/// The table `<schema>.migration`: one row for each applied file.
enum MigrationTable {
    static func exists(_ schema: String) -> SQL {
        """
        SELECT EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
                       WHERE nspname = \(schema) AND relname = 'migration')
        """
    }

    static func currentVersion(_ schema: String) -> SQL {
        "SELECT coalesce(max(version), 0) FROM \(identifier: schema).migration"
    }

    static func all(_ schema: String) -> SQL {
        "SELECT version, name, checksum FROM \(identifier: schema).migration ORDER BY version"
    }

    static func schemaExists(_ schema: String) -> SQL {
        "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = \(schema))"
    }

    static func createSchema(_ schema: String) -> SQL { "CREATE SCHEMA \(identifier: schema)" }

    static func create(_ schema: String) -> SQL {
        """
        CREATE TABLE \(identifier: schema).migration (
            version integer PRIMARY KEY,
            name text NOT NULL,
            checksum text NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now(),
            duration interval NOT NULL
        )
        """
    }

    static func record(_ file: MigrationFile, duration: Duration, in schema: String) -> SQL {
        """
        INSERT INTO \(identifier: schema).migration (version, name, checksum, duration)
        VALUES (\(file.version), \(file.name), \(file.checksum), \(duration))
        """
    }
}
