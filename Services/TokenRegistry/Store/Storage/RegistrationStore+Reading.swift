import FoundationEssentials
package import Postgres
import PushProtocol

extension RegistrationStore {
    /// Maximum users of one query. For tens of thousands the planner would scan the whole table.
    static let usersAtOnce = 1000
    /// Maximum parallel queries of a batch. One connection uses one core of the database.
    static let queriesAtOnce = 3

    /// Reads the active registrations of each user, in the order of `users`; each user's are sorted by id. Runs one
    /// query for each ``usersAtOnce`` users. `users` has no duplicates.
    package func devices(of users: [AppUser]) async throws(PostgresError) -> [[Registration]] {
        typealias Answer = (start: Int, registrations: Result<[[Registration]], PostgresError>)
        let answers = await withTaskGroup(of: Answer.self) { group in
            var answers: [Answer] = []
            for start in stride(from: 0, to: users.count, by: Self.usersAtOnce) {
                if start >= Self.queriesAtOnce * Self.usersAtOnce, let answer = await group.next() {
                    answers.append(answer)
                }
                let part = Array(users[start..<min(start + Self.usersAtOnce, users.count)])
                group.addTask { (start, await registrations(of: part)) }
            }
            for await answer in group { answers.append(answer) }
            return answers
        }
        var devices: [[Registration]] = []
        devices.reserveCapacity(users.count)
        for answer in answers.sorted(by: { $0.start < $1.start }) {
            devices.append(contentsOf: try answer.registrations.get())
        }
        return devices
    }

    private func registrations(of users: [AppUser]) async -> Result<[[Registration]], PostgresError> {
        do throws(PostgresError) {
            var registrations = [[Registration]](repeating: [], count: users.count)
            for row in try await database.query(Self.resolution(of: users)) {
                let place = try row.decode(Int.self, at: Registration.ownColumnCount) - 1
                // An unreadable row must not fail the batch for the other users.
                let registration = UnreadableRegistrations.passing(over: users[place].app) {
                    try Registration(row, of: users[place], tokens)
                }
                if let registration { registrations[place].append(registration) }
            }
            for place in registrations.indices where registrations[place].count > 1 {
                registrations[place].sort { $0.device < $1.device }
            }
            return .success(registrations)
        } catch {
            return .failure(error)
        }
    }

    /// Queries registrations with their user's index, counted from 1. That is cheaper than both names, and than
    /// sorting.
    static func resolution(of users: [AppUser]) -> SQL {
        """
        SELECT \(Registration.ownColumns), u.place
        FROM unnest(\(users.map(\.app.rawValue))::text[], \(users.map(\.user.rawValue))::text[])
            WITH ORDINALITY AS u (app, user_id, place)
        JOIN registry.registration r ON r.app = u.app AND r.user_id = u.user_id AND r.state = 'active'
        """
    }

    /// Reads all registrations of a user, latest first, for operators. Unreadable rows become entries with a reason.
    package func history(of user: AppUser) async throws(PostgresError) -> [HistoryEntry] {
        try await database.query(Self.record(of: user)).map { HistoryEntry($0, tokens, of: user.app) }
    }

    /// Queries active and ended registrations separately, since each has its own index.
    static func record(of user: AppUser) -> SQL {
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
