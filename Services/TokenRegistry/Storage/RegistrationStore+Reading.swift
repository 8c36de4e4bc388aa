import FoundationEssentials
import Postgres
import PushProtocol

extension RegistrationStore {
    /// The most users that one query names. For tens of thousands the planner reads the whole table through instead, which
    /// is the slower the larger it is.
    static let usersAtOnce = 1000
    /// The most queries of a batch that run beside each other: a single connection keeps one core of the database busy.
    static let queriesAtOnce = 3

    /// The active registrations of each of these users, in the users' order, and each user's in the order of their ids; in
    /// one query for every ``usersAtOnce``. A user is named once.
    func devices(of users: [AppUser]) async throws(PostgresError) -> [[Registration]] {
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
                // One row that cannot be read must not keep a batch of other users from their devices.
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

    /// Each registration with its user's place, counted from 1: cheaper than both their names, and than an order.
    static func resolution(of users: [AppUser]) -> SQL {
        """
        SELECT \(Registration.ownColumns), u.place
        FROM unnest(\(users.map(\.app.rawValue))::text[], \(users.map(\.user.rawValue))::text[])
            WITH ORDINALITY AS u (app, user_id, place)
        JOIN registry.registration r ON r.app = u.app AND r.user_id = u.user_id AND r.state = 'active'
        """
    }

    /// Everything known about one user's devices, the latest first, for operators. A row that cannot be read is an entry with
    /// the reason.
    func history(of user: AppUser) async throws(PostgresError) -> [HistoryEntry] {
        try await database.query(Self.record(of: user)).map { HistoryEntry($0, tokens, of: user.app) }
    }

    /// Present and past lie in an index each.
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
