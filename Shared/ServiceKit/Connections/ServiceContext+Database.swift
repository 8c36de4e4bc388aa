package import Postgres
package import ServiceLifecycle

/// A pool, and what runs for it.
package struct DatabaseAssembly: Sendable {
    package let pool: PostgresPool
    /// Come before whatever uses the pool.
    package let services: [any Service]
}

extension ServiceContext {
    /// The database of `DATABASE_URL`.
    ///
    /// - Parameter poolSize: How many connections; the configuration's number by default.
    package func postgres(poolSize: Int? = nil) throws(ConfigurationError) -> PostgresConfiguration {
        let usual = try settings.integer(.databasePoolSize)
        return try settings.postgres(
            poolSize: poolSize ?? usual, applicationName: "heliograph-\(name)", logger: logger)
    }

    /// A pool on the database, with two readiness conditions: that it answers, and that `schema` has been migrated to
    /// at least the version this build was written for. Both are tried for as long as it takes. A third condition is
    /// degraded while the server's settings can lose a committed row.
    ///
    /// - Parameter migration: the number of the last migration in the service's own folder. A newer one is fine:
    ///   migrations are made so that the release before them still works.
    package func database(schema: String, migration: Int) throws(ConfigurationError) -> DatabaseAssembly {
        let pool = PostgresPool(configuration: try postgres(), logger: logger)
        readiness.register("database") {
            pool.isAvailable ? .holds : .waiting("the database of DATABASE_URL cannot be reached")
        }
        let check = StartupCheck(
            condition: "schema", readiness: readiness, logger: logger, waiting: "the schema was not looked at yet"
        ) {
            let version = try await PostgresMigrator.currentVersion(schema: schema, pool: pool)
            guard version < migration else { return nil }
            return "schema \(schema) is at migration \(version), \(migration) is needed; run `pushctl migrate`"
        }
        let durability = DurabilityCheck(pool: pool, readiness: readiness, logger: logger)
        return DatabaseAssembly(pool: pool, services: [pool, check, durability])
    }
}
