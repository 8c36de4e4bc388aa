package import Logging

/// Brings a schema up to date: the files of one directory, `NNNN_name.sql`, applied in order, forward only.
///
/// Each file is one transaction together with its line in `<schema>.migration`, so it is applied wholly or not at all.
/// An advisory lock lets one migrator work at a time. Locks on tables are waited for briefly and tried again, because
/// every other statement queues up behind a waiting `ALTER TABLE`. The connection is its own and must not go through a
/// pooler in transaction mode.
package enum PostgresMigrator {
    /// Applies what is pending, after creating schema and table if they are missing.
    ///
    /// - Parameters:
    ///   - statementTimeout: how long one file may take.
    ///   - patience: how long to wait for another migrator, and for each file's locks.
    /// - Returns: what was applied by this call.
    @discardableResult
    package static func migrate(
        schema: String, directory: String, configuration: PostgresConfiguration, logger: Logger,
        statementTimeout: Duration = .seconds(600), patience: Duration = .seconds(60)
    ) async throws -> [MigrationFile] {
        let files = try MigrationFile.read(directory: directory)
        var configuration = configuration
        configuration.statementTimeout = statementTimeout
        configuration.lockTimeout = .seconds(2)
        return try await withConnection(configuration, logger: logger) { connection in
            let run = MigrationRun(connection: connection, schema: schema, patience: patience, logger: logger)
            return try await run.apply(files)
        }
    }

    /// What `migrate` would apply, in order. Changes nothing.
    package static func pending(
        schema: String, directory: String, configuration: PostgresConfiguration, logger: Logger
    ) async throws -> [MigrationFile] {
        let files = try MigrationFile.read(directory: directory)
        return try await withConnection(configuration, logger: logger) { connection in
            let run = MigrationRun(connection: connection, schema: schema, patience: .zero, logger: logger)
            return try MigrationPlan.pending(files: files, applied: try await run.applied(), schema: schema)
        }
    }

    /// The number of the last migration applied to `schema`, 0 if none ever was. For a service to compare at its start
    /// with the one it was written for.
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

/// `<schema>.migration`: one line for each file applied.
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
