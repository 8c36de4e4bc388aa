package import Postgres
import FoundationEssentials
import PushProtocol

extension RegistrationStore {
    /// Maximum users of one query. For tens of thousands the planner would scan the whole table.
    static let usersPerQuery = 1000
    /// Maximum parallel queries of a batch, each on its own connection. The database runs a query on one core.
    static let parallelQueries = 3

    /// Reads the active registrations of each user. Runs one query for each ``usersPerQuery`` users.
    ///
    /// - Parameter users: The users, without duplicates.
    /// - Returns: One element for each user, in the order of `users`: the registrations, sorted by device id.
    package func devices(of users: [AppUser]) async throws(PostgresError) -> [[Registration]] {
        typealias Part = (start: Int, registrations: Result<[[Registration]], PostgresError>)
        let parts = await withTaskGroup(of: Part.self) { group in
            var parts: [Part] = []
            for start in stride(from: 0, to: users.count, by: Self.usersPerQuery) {
                // After the first `parallelQueries` queries, each further one waits for the end of an earlier one.
                if start >= Self.parallelQueries * Self.usersPerQuery, let part = await group.next() {
                    parts.append(part)
                }
                let usersOfPart = Array(users[start..<min(start + Self.usersPerQuery, users.count)])
                group.addTask { (start, await registrations(of: usersOfPart)) }
            }
            for await part in group { parts.append(part) }
            return parts
        }
        var devices: [[Registration]] = []
        devices.reserveCapacity(users.count)
        for part in parts.sorted(by: { $0.start < $1.start }) {
            devices.append(contentsOf: try part.registrations.get())
        }
        return devices
    }

    private func registrations(of users: [AppUser]) async -> Result<[[Registration]], PostgresError> {
        do throws(PostgresError) {
            var registrations = [[Registration]](repeating: [], count: users.count)
            for row in try await database.query(Self.activeRegistrationsQuery(of: users)) {
                let index = try row.decode(Int.self, at: Registration.columnsWithoutOwnerCount) - 1
                // An unreadable row must not fail the batch for the other users.
                let registration = UnreadableRegistrations.readOrSkip(of: users[index].app) {
                    try Registration(row, of: users[index], tokens)
                }
                if let registration { registrations[index].append(registration) }
            }
            for index in registrations.indices where registrations[index].count > 1 {
                registrations[index].sort { $0.device < $1.device }
            }
            return .success(registrations)
        } catch {
            return .failure(error)
        }
    }

    /// Queries the active registrations in any order. Each row has the position of its user in `users`, counted from 1,
    /// instead of app and user id: a number is cheaper to read than two names, and the database need not sort.
    static func activeRegistrationsQuery(of users: [AppUser]) -> SQL {
        """
        SELECT \(Registration.columnsWithoutOwner), u.position
        FROM unnest(\(users.map(\.app.rawValue))::text[], \(users.map(\.user.rawValue))::text[])
            WITH ORDINALITY AS u (app, user_id, position)
        JOIN registry.registration r ON r.app = u.app AND r.user_id = u.user_id AND r.state = 'active'
        """
    }

    /// Reads the active and ended registrations of a user for operators: the latest 200, latest first. An unreadable
    /// row becomes an entry with a reason.
    package func history(of user: AppUser) async throws(PostgresError) -> [HistoryEntry] {
        try await database.query(Self.historyQuery(of: user)).map { HistoryEntry($0, tokens, of: user.app) }
    }

    /// Queries active and ended registrations separately, because each kind has its own partial index.
    static func historyQuery(of user: AppUser) -> SQL {
        """
        SELECT \(RegistrationRecord.columns) FROM (
            SELECT * FROM registry.registration
            WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue) AND state = 'active'
            UNION ALL
            SELECT * FROM registry.registration
            WHERE app = \(user.app.rawValue) AND user_id = \(user.user.rawValue) AND state <> 'active'
        ) AS r
        ORDER BY r.registered_at DESC, r.device_id
        LIMIT 200
        """
    }
}
