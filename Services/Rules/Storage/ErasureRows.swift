import FoundationEssentials
import Postgres
import PushProtocol
import RuleEngine
import RuleLanguage

extension PostgresTransaction {
    /// Removes users from events that happened before their erasure.
    func withoutErased(_ events: [EventCase]) async throws -> [EventCase] {
        let people = Set(events.flatMap(\.people))
        guard !people.isEmpty else { return events }
        let erased = try await erasures(of: people)
        return erased.isEmpty ? events : events.map { $0.without(erased) }
    }

    /// The times of these users' erasures.
    func erasures(of people: Set<PersonKey>) async throws -> [PersonKey: Timestamp] {
        let digests = Dictionary(people.map { ($0.digest, $0) }) { first, _ in first }
        var erased: [PersonKey: Timestamp] = [:]
        for row in try await query(
            "SELECT person, erased_at FROM rules.erasure WHERE person = ANY(\(Array(digests.keys)))")
        {
            guard let person = digests[try row.decode(UUID.self, at: 0)] else { continue }
            erased[person] = Timestamp(try row.decode(Date.self, at: 1))
        }
        return erased
    }
}

extension EventCase {
    /// The users that the event names.
    fileprivate var people: [PersonKey] {
        let named = drafts.flatMap { $0.recipients.map(\.user) } + signals.flatMap(\.users)
        return named.map { PersonKey(app: record.app, user: $0) }
    }

    /// The event without users whose erasure is later than the event.
    fileprivate func without(_ erased: [PersonKey: Timestamp]) -> EventCase {
        var event = self
        func isErased(_ user: UserID) -> Bool {
            erased[PersonKey(app: record.app, user: user)].map { record.occurredAt <= $0 } ?? false
        }
        for index in event.drafts.indices {
            event.drafts[index].recipients.removeAll { isErased($0.user) }
        }
        event.signals = signals.compactMap { signal in
            switch signal {
            case .present(let user, _, _, _), .gone(let user, _), .read(let user, _): isErased(user) ? nil : signal
            case .membership(let group, let members, let change):
                .membership(group: group, members.filter { !isErased($0.key) }, change)
            case .done: signal
            case .revoke(_, let user, _, _): user.map(isErased) == true ? nil : signal
            }
        }
        return event
    }
}

extension Signal {
    fileprivate var users: [UserID] {
        switch self {
        case .present(let user, _, _, _), .gone(let user, _), .read(let user, _): [user]
        case .membership(_, let members, _): Array(members.keys)
        case .done: []
        case .revoke(_, let user, _, _): user.map { [$0] } ?? []
        }
    }
}
