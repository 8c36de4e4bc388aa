import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

extension PostgresTransaction {
    /// Applies the signals of events: group membership, done and revoked items, presence and reads.
    func take(_ events: [EventCase], now: Timestamp) async throws {
        try await keepMembers(events)
        try await takeBack(events, now: now)
        var presences: [PresenceKey: Signal] = [:]
        var readings: [(person: PersonKey, thread: String?, clearsShown: Bool)] = []
        for event in events {
            for signal in event.signals {
                let app = event.record.app
                switch signal {
                case .present(let user, let device, _, _), .gone(let user, let device):
                    presences[PresenceKey(person: PersonKey(app: app, user: user), device: device)] = signal
                case .read(let user, let thread):
                    readings.append((PersonKey(app: app, user: user), thread, event.defaults.clearsRead))
                case .membership, .done, .revoke: break
                }
            }
        }
        // Sorted by user, so that two batches with the same readers wait for each other and do not deadlock.
        for (person, thread, clearsShown) in readings.sorted(by: { $0.person < $1.person }) {
            _ = try await query(
                InboxStore.mark(
                    thread.map { "AND thread = \($0)" } ?? "", person, clearsShown: clearsShown, now: now))
        }
        guard !presences.isEmpty else { return }
        try await execute(PresenceRows.presence(presences, now: now))
    }

    /// The unread counts of users.
    func unread(_ people: Set<PersonKey>) async throws -> [PersonKey: Int] {
        guard !people.isEmpty else { return [:] }
        var counts: [PersonKey: Int] = [:]
        for row in try await query(PresenceRows.unread(people.sorted())) {
            let key = try PersonRows.key(row)
            counts[key] = try row.decode(Int.self, at: 2)
        }
        return counts
    }
}

/// A user on a device.
private struct PresenceKey: Hashable {
    var person: PersonKey
    var device: String
}

private enum PresenceRows {
    /// Stores presence. A closed app gets a lease that has ended.
    static func presence(_ presences: [PresenceKey: Signal], now: Timestamp) -> SQL {
        let keys = presences.keys.sorted { ($0.person, $0.device) < ($1.person, $1.device) }
        let views = keys.map { key -> (String?, Timestamp) in
            switch presences[key] {
            case .present(_, _, let viewing, let lease): (viewing, now + lease)
            case .gone, .read, .membership, .done, .revoke, nil: (nil, now)
            }
        }
        return """
            INSERT INTO rules.presence (app, user_id, device, viewing, expires_at) SELECT * FROM unnest(
                \(keys.map(\.person.app.rawValue)), \(keys.map(\.person.user.rawValue)), \(keys.map(\.device)),
                \(views.map(\.0)), \(views.map(\.1.date))
            )
            ON CONFLICT (app, user_id, device) DO UPDATE SET viewing = EXCLUDED.viewing, expires_at = EXCLUDED.expires_at
            """
    }

    static func unread(_ people: [PersonKey]) -> SQL {
        """
        SELECT app, user_id, count(*) FROM rules.inbox JOIN \(PersonRows.table(people)) USING (app, user_id)
        WHERE read_at IS NULL AND dead_at IS NULL GROUP BY app, user_id
        """
    }
}
