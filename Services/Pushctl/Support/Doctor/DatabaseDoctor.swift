import DecisionLog
import FeedbackStore
import Foundation
import HTTPAuth
import Postgres
import PushProtocol
import ServiceConnections
import ServiceKit

/// The checks of the database, and of what the services stored in it.
struct DatabaseDoctor: Sendable {
    /// The folder of the services with their migrations; `nil` if none was found.
    let migrations: String?

    /// The oldest server that the migrations run on.
    private static let oldestServer = 150_000
    private static let keyWarning = 14.0 * 86_400

    func findings() async -> [Finding] {
        guard Environment.isSet(.databaseURL) else {
            return [
                .skipped(
                    "database", "DATABASE_URL is not set", cure: "set DATABASE_URL, with the owner of the schemas")
            ]
        }
        let database: PostgresConfiguration
        do {
            let settings = try Environment.settings(.postgres)
            database = try settings.postgres(poolSize: 1, applicationName: "pushctl", logger: Environment.logger)
        } catch {
            return [.error("database", "\(error)", cure: "correct DATABASE_URL")]
        }
        var findings: [Finding] = []
        do {
            findings += try await withDatabase { try await Self.server(DatabaseInspection.read($0)) }
        } catch {
            return [.error("database", "\(error)", cure: "check that the database runs, and DATABASE_URL")]
        }
        let schemas = await schemas(database)
        findings += schemas
        // Each group is read alone: one outdated schema must not hide the others.
        findings += await read("database-rights") { pool in try await Self.rights(pool) }
        guard !schemas.contains(where: { $0.severity == .error }) else { return findings }
        findings += await read("census") { pool in try await Self.census(CensusTable(pool).read(app: nil)) }
        findings += await read("dead-rows") { pool in
            try await Self.deadRows(DeadRowStore(pool, tables: DeadRowTable.all).count(.init()))
        }
        findings += await read("guards") { pool in
            let store = QuarantineStore(pool)
            return Self.guards(
                try await store.guards(app: nil), quarantined: try await store.list(app: nil, limit: 1).total)
        }
        return findings + (await read("api-keys") { pool in try await Self.keys(pool) })
    }

    private func read(
        _ check: String, _ body: @escaping @Sendable (PostgresPool) async throws -> [Finding]
    ) async -> [Finding] {
        do {
            return try await withDatabase { try await body($0) }
        } catch {
            return [.error(check, "\(error)", cure: "use the owner of the schemas in DATABASE_URL")]
        }
    }

    // MARK: - The server

    static func server(_ server: DatabaseInspection) -> [Finding] {
        let name = "Postgres \(server.serverVersion / 10_000).\(server.serverVersion % 10_000)"
        var findings: [Finding] = [
            server.serverVersion < oldestServer
                ? .error("database", "\(name) is too old", cure: "use Postgres 15 or newer")
                : .ok("database", "\(name) accepts the login")
        ]
        let share = "\(server.connections) of \(server.maximumConnections) connections are in use"
        findings.append(
            10 * server.connections > 9 * server.maximumConnections
                ? .warning(
                    "connections", share, cure: "raise max_connections, or lower DATABASE_POOL_SIZE of the services")
                : .ok("connections", share))
        findings += server.durabilityRisks.map {
            Finding.error("durability", $0, cure: "change the settings as deploy/operations/postgres.md shows")
        }.orOK("durability", "a commit survives a crash of the server")
        return findings + [
            ClockComparison.finding(
                "the database", difference: server.clockDifference, error: .milliseconds(100))
        ]
    }

    // MARK: - Schemas

    private func schemas(_ configuration: PostgresConfiguration) async -> [Finding] {
        let check = "schema"
        guard let migrations else {
            return [.skipped(check, "the migrations are not here", cure: "give their folder with --migrations")]
        }
        var findings: [Finding] = []
        for (schema, folder) in MigrateCommand.schemas {
            do {
                let pending = try await PostgresMigrator.pending(
                    schema: schema, directory: "\(migrations)/\(folder)", configuration: configuration,
                    logger: Environment.logger)
                findings.append(
                    pending.first.map { first in
                        Finding.error(
                            check, "\(schema) lacks \(pending.count) migrations, from \(first.fileName) on",
                            cure: "pushctl migrate --migrations \(migrations)")
                    } ?? .ok(check, "\(schema) has all migrations"))
            } catch {
                findings.append(
                    .error(check, "\(schema): \(error)", cure: "use the migrations of the installed release"))
            }
        }
        return findings
    }

    private static func rights(_ pool: PostgresPool) async throws -> [Finding] {
        let check = "database-rights"
        let roles = [
            ("heliograph_feedback", "feedback"), ("heliograph_token_registry", "registry"),
            ("heliograph_rules", "rules"), ("heliograph_events_api", "rules"),
        ]
        var findings: [Finding] = []
        for (role, schema) in roles {
            guard try await PostgresMigrator.currentVersion(schema: schema, pool: pool) > 0 else { continue }
            let rights = try await DatabaseInspection.rights(of: role, in: schema, pool)
            if !rights.exists {
                findings.append(.error(check, "the role \(role) does not exist", cure: "run pushctl migrate"))
            } else if !rights.mayUseSchema {
                findings.append(
                    .error(
                        check, "the role \(role) may not use the schema \(schema)",
                        cure: "GRANT USAGE ON SCHEMA \(schema) TO \(role), and the right to read \(schema).migration"))
            } else if !rights.hasLogin {
                findings.append(
                    .warning(
                        check, "no login is a member of \(role)",
                        cure: "CREATE ROLE … LOGIN IN ROLE \(role) for its service"))
            }
        }
        return findings.orOK(check, "the services' roles may use their schemas")
    }

    // MARK: - The services' data

    static func census(_ census: Census) -> [Finding] {
        var findings: [Finding] = census.gaps.map { gap in
            .error(
                "census", "\(gap.number) notifications of \(gap.app) are missing (\(gap.state))",
                cure: "pushctl explain \(gap.event) --app \(gap.app)")
        }
        if !census.isCurrent {
            let age = census.countedAt.map { "since \(RFC3339.seconds(from: $0))" } ?? "ever"
            findings.append(
                .warning("census", "rules has not counted \(age)", cure: "check that rules is running and ready"))
        }
        return findings.orOK("census", "\(census.total) notifications, none is missing")
    }

    static func deadRows(_ counts: [(table: String, count: Int)]) -> [Finding] {
        counts.map { table, count in
            Finding.warning(
                "dead-rows", "\(count) rows of \(table) could not be processed",
                cure: "pushctl dead-rows list --table \(table)")
        }.orOK("dead-rows", "there are no dead rows")
    }

    static func guards(_ guards: [QuarantineStore.TrippedGuard], quarantined: Int) -> [Finding] {
        var findings: [Finding] = guards.map { tripped in
            .warning(
                "guards", "the guard of \(tripped.route) is tripped since \(RFC3339.seconds(from: tripped.since))",
                cure: "check the route's credentials, then pushctl feedback quarantine list")
        }
        if quarantined > 0 {
            findings.append(
                .warning(
                    "guards", "\(quarantined) registrations are quarantined",
                    cure: "pushctl feedback quarantine list, then release or discard"))
        }
        return findings.orOK("guards", "no guard is tripped, and nothing is quarantined")
    }

    private static func keys(_ pool: PostgresPool) async throws -> [Finding] {
        let now = Date()
        var findings: [Finding] = []
        for service in APIKeyService.allCases {
            for key in try await APIKeyStore(pool, schema: service.schema).list() where key.state(now: now) == "active"
            {
                guard let expiry = key.expiresAt, expiry.timeIntervalSince(now) < keyWarning else { continue }
                findings.append(
                    .warning(
                        "api-keys",
                        "the key \(key.id) (\(key.name)) of \(service.rawValue) expires on "
                            + RFC3339.seconds(from: expiry),
                        cure: "pushctl keys create --service \(service.rawValue), then revoke the old key"))
            }
        }
        return findings.orOK("api-keys", "no API key expires within two weeks")
    }
}
