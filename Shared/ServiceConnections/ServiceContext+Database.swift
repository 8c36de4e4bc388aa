package import Postgres
package import ServiceKit
package import ServiceLifecycle

package struct DatabaseAssembly: Sendable {
    package let pool: PostgresPool
    /// Run them before the services that use the pool.
    package let services: [any Service]
}

extension ServiceContext {
    /// Returns the configuration of the database of `DATABASE_URL`.
    ///
    /// - Parameter poolSize: the maximum of connections; by default `DATABASE_POOL_SIZE`.
    package func postgres(poolSize: Int? = nil) throws(ConfigurationError) -> PostgresConfiguration {
        let configuredSize = try settings.integer(.databasePoolSize)
        return try settings.postgres(
            poolSize: poolSize ?? configuredSize, applicationName: "heliograph-\(name)", logger: logger)
    }

    /// Creates a database pool and registers two readiness conditions: the database is reachable, and `schema` has at
    /// least the migration that this build needs. Both are retried without a limit. A third condition is degraded while
    /// the server's settings can lose a committed row.
    ///
    /// - Parameter migration: the number of the last migration in the service's folder. A newer schema is compatible:
    ///   migrations keep the previous release working.
    package func database(schema: String, migration: Int) throws(ConfigurationError) -> DatabaseAssembly {
        let pool = PostgresPool(configuration: try postgres(), logger: logger)
        readiness.register("database") {
            pool.isAvailable ? .holds : .waiting("the database of DATABASE_URL is unreachable")
        }
        watch(pool, schema)
        let check = StartupCheck(
            condition: "schema", readiness: readiness, logger: logger, waiting: "the schema has not been checked yet"
        ) {
            let version = try await PostgresMigrator.currentVersion(schema: schema, pool: pool)
            guard version < migration else { return nil }
            return "schema \(schema) is at migration \(version), \(migration) is needed; run `pushctl migrate`"
        }
        let durability = DurabilityCheck(pool: pool, readiness: readiness, logger: logger)
        return DatabaseAssembly(pool: pool, services: [pool, check, durability])
    }

    /// Exports the pool's state.
    private func watch(_ pool: PostgresPool, _ schema: String) {
        func gauge(
            _ name: String, _ more: [(String, String)] = [], _ value: @escaping @Sendable (PoolStatistics) -> Int
        ) {
            samples.register(name, labels: [("schema", schema)] + more) { Double(value(pool.statistics)) }
        }
        gauge("heliograph_database_pool_size") { $0.size }
        gauge("heliograph_database_connections", [("state", "in-use")]) { $0.inUse }
        gauge("heliograph_database_connections", [("state", "idle")]) { $0.idle }
        gauge("heliograph_database_callers_waiting") { $0.waiting }
    }
}
