import FoundationEssentials
import Postgres
import PushProtocol

extension RegistrationStore {
    /// The most users that one query names. For tens of thousands the planner reads the whole table through instead, which
    /// is the slower the larger it is.
    static let usersAtOnce = 1000
    /// The most queries of a batch that run beside each other: a single connection keeps one core of the database busy.
    static let queriesAtOnce = 3

    /// The active registrations of all these users, in one query for every ``usersAtOnce``.
    func devices(of users: Set<AppUser>) async throws(PostgresError) -> [AppUser: [Registration]] {
        let users = Array(users)
        var parts = stride(from: 0, to: users.count, by: Self.usersAtOnce).map {
            Array(users[$0..<min($0 + Self.usersAtOnce, users.count)])
        }
        let answers = await withTaskGroup { group in
            for _ in 0..<Self.queriesAtOnce {
                guard let part = parts.popLast() else { break }
                group.addTask { await registrations(of: part) }
            }
            var answers: [Result<[Registration], PostgresError>] = []
            while let answer = await group.next() {
                answers.append(answer)
                if let part = parts.popLast() { group.addTask { await registrations(of: part) } }
            }
            return answers
        }
        var devices: [AppUser: [Registration]] = [:]
        for answer in answers {
            for registration in try answer.get() {
                devices[AppUser(app: registration.app, user: registration.user), default: []].append(registration)
            }
        }
        return devices
    }

    private func registrations(of users: [AppUser]) async -> Result<[Registration], PostgresError> {
        do throws(PostgresError) {
            var registrations: [Registration] = []
            for row in try await database.query(Self.resolution(of: users)) {
                registrations.append(try Registration(row))
            }
            return .success(registrations)
        } catch {
            return .failure(error)
        }
    }

    static func resolution(of users: [AppUser]) -> SQL {
        """
        SELECT \(Registration.columns)
        FROM unnest(\(users.map(\.app.rawValue))::text[], \(users.map(\.user.rawValue))::text[]) AS u (app, user_id)
        JOIN registry.registration r ON r.app = u.app AND r.user_id = u.user_id AND r.state = 'active'
        ORDER BY r.device_id
        """
    }

    /// Everything known about one user's devices, the latest first, for operators.
    func history(of user: AppUser) async throws(PostgresError) -> [RegistrationRecord] {
        var records: [RegistrationRecord] = []
        for row in try await database.query(Self.record(of: user)) { records.append(try RegistrationRecord(row)) }
        return records
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
