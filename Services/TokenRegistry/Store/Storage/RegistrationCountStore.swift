import FoundationEssentials
package import Postgres
package import PushProtocol

/// Counts registrations one primary-key range at a time, so that statements stay short in large tables.
package struct RegistrationCountStore: Sendable {
    /// Maximum registrations one statement reads.
    package static let defaultStep = 20_000

    private let database: PostgresPool
    private let step: Int

    package init(_ database: PostgresPool, step: Int = defaultStep) {
        self.database = database
        self.step = step
    }

    /// The columns by which registrations are counted.
    package struct Group: Hashable, Sendable {
        package var app: AppID
        package var kind: RegistrationKind
        package var environment: ProviderEnvironment
        package var state: RegistrationState
    }

    /// Counts registrations by group. Not a snapshot: each range is counted as of its own statement.
    package func count() async throws(PostgresError) -> [Group: Int] {
        var counts: [Group: Int] = [:]
        var position: UUID? = SweepStore.first
        while let start = position {
            let end = try await database.query(SweepStore.end(of: step, after: start)).first?.decode(UUID.self, at: 0)
            for row in try await database.query(Self.range(after: start, until: end ?? SweepStore.last)) {
                // Only a newer release knows this group. Skip it.
                guard let group = try? Group(row) else { continue }
                counts[group, default: 0] += Int(try row.decode(Int64.self, at: 5))
            }
            position = end
        }
        return counts
    }

    static func range(after start: UUID, until end: UUID) -> SQL {
        """
        SELECT app, provider, kind, environment, state, count(*) FROM registry.registration
        WHERE device_id > \(start) AND device_id <= \(end)
        GROUP BY app, provider, kind, environment, state
        """
    }
}

extension RegistrationCountStore.Group {
    fileprivate init(_ row: PostgresRow) throws(PostgresError) {
        let provider = try row.decode(Provider.self, at: 1)
        self.init(
            app: try row.decode(AppID.self, at: 0),
            kind: try row.decode(RegistrationKind?.self, at: 2) ?? .defaultKind(for: provider),
            environment: try row.decode(ProviderEnvironment.self, at: 3),
            state: try row.decode(RegistrationState.self, at: 4))
    }
}

extension RegistrationCountStore.Group: Comparable {
    package static func < (a: Self, b: Self) -> Bool {
        (a.app, a.kind.rawValue, a.environment, a.state.rawValue)
            < (b.app, b.kind.rawValue, b.environment, b.state.rawValue)
    }
}
