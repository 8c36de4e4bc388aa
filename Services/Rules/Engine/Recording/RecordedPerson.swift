package import PushProtocol
package import RuleLanguage

/// The state of a user that a decision read. A member is absent if it had its default, or was not read.
package struct RecordedPerson: Codable, Hashable, Sendable {
    package var settings: PersonalSettings?
    /// `nil` if the decision did not read the presence.
    package var presence: [Lease]?
    /// The times of the last pushes, by cap.
    package var caps: [String: [Timestamp]]?
    /// The end of each dedupe key.
    package var dedupe: [String: Timestamp]?

    package struct Lease: Codable, Hashable, Sendable {
        package var viewing: String?
        package var until: Timestamp
    }

    /// - Parameters:
    ///   - caps: the names of the caps that the decision reads.
    ///   - dedupe: the dedupe keys that it reads.
    ///   - readsPresence: whether it reads the presence.
    package init(_ person: Person, caps: Set<String>, dedupe: Set<String> = [], readsPresence: Bool) {
        settings = person.settings == PersonalSettings() ? nil : person.settings
        presence =
            readsPresence ? person.leases.map { Lease(viewing: $0.viewing, until: $0.expiresAt) } : nil
        let logs = person.capHistory.filter { caps.contains($0.key) && !$0.value.isEmpty }
        self.caps = logs.isEmpty ? nil : logs
        let keys = person.dedupeUntil.filter { dedupe.contains($0.key) }
        self.dedupe = keys.isEmpty ? nil : keys
    }

    package var person: Person {
        Person(
            settings: settings ?? PersonalSettings(),
            leases: (presence ?? []).map { Person.Lease(viewing: $0.viewing, expiresAt: $0.until) },
            capHistory: caps ?? [:], dedupeUntil: dedupe ?? [:])
    }
}

extension AppDefaults {
    /// The names of the cap histories that a decision on a notification of this policy reads.
    package func capNames(_ policy: Rule.Policy) -> Set<String> {
        isCritical(policy) ? [Cap.criticalLog] : Set(policy.caps)
    }
}
