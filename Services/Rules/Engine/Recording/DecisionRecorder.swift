package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

/// Gathers the inputs of a batch of decisions about events, for apps that record them.
package struct DecisionRecorder: Sendable {
    private let apps: Set<AppID>
    private let now: Timestamp
    /// By event: the members of the groups that are recipients.
    private var groups: [UUID: [String: [RecordedInputs.Member]]] = [:]
    private var largeRules: [UUID: [String]] = [:]
    /// Events with the name of a user whose erasure is later than the event.
    private var excluded: Set<UUID> = []
    package private(set) var recordings: [Recording] = []

    package init(_ apps: Set<AppID>, now: Timestamp) {
        self.apps = apps
        self.now = now
    }

    func records(_ app: AppID) -> Bool { apps.contains(app) }

    /// Notes the members that a notification gets as recipients.
    package mutating func note(_ groups: [(GroupReference, [GroupReference.Member])], of event: EventCase) {
        guard records(event.record.app) else { return }
        for (reference, members) in groups {
            self.groups[event.record.key, default: [:]][reference.group] = members.map {
                RecordedInputs.Member(user: $0.user, role: $0.role)
            }
        }
    }

    /// Notes a rule whose recipients are decided in steps.
    package mutating func noteLargeAudience(of rule: String, _ event: EventCase) {
        guard records(event.record.app) else { return }
        largeRules[event.record.key, default: []].append(rule)
    }

    /// The names in the recorded events among these, by event.
    package func names(in events: [EventCase]) -> [UUID: [PersonKey]] {
        var names: [UUID: [PersonKey]] = [:]
        for event in events where records(event.record.app) {
            let members = (groups[event.record.key] ?? [:]).values.joined().map(\.user)
            let named = event.event.names.compactMap(UserID.init(rawValue:)) + members
            names[event.record.key] = named.map { PersonKey(app: event.record.app, user: $0) }
        }
        return names
    }

    /// Leaves events out, because they name users that were erased later.
    package mutating func leaveOut(_ events: Set<UUID>) { excluded.formUnion(events) }

    /// Adds an event before its decisions. Call ``count(_:)`` with them.
    ///
    /// - Parameter isPage: whether it is a step of a fan-out.
    /// - Returns: whether the event is recorded.
    package mutating func add(
        _ event: EventCase, isPage: Bool, _ people: [PersonKey: Person], _ items: ItemState
    ) -> Bool {
        let record = event.record
        guard records(record.app), !excluded.contains(record.key) else { return false }
        let inputs = RecordedInputs(event, groups: groups[record.key] ?? [:], people, items)
        let body: Recording.Body
        if isPage {
            guard let draft = event.drafts.first else { return false }
            body = .page(
                RecordedPage(
                    rule: draft.rendered.rule, arrived: record.arrivedAt, users: draft.recipients.map(\.user),
                    inputs: inputs))
        } else {
            body = .event(
                RecordedEvent(
                    event: StoredEvent(event.event), arrived: record.arrivedAt, large: largeRules[record.key],
                    inputs: inputs))
        }
        recordings.append(
            Recording(app: record.app, event: record.key, ruleSet: record.ruleSet, at: now, count: 0, body: body))
        return true
    }

    /// Adds a held notification before its decision.
    package mutating func add(_ item: HeldItem, by found: (rule: Rule, set: RuleSet)?, _ people: [PersonKey: Person]) {
        guard records(item.person.app) else { return }
        let policy = found?.rule.policy
        let person = RecordedPerson(
            people[item.person] ?? Person(), caps: found.map { $0.set.defaults.capNames($0.rule.policy) } ?? [],
            readsPresence: policy.map { $0.presence != .ignored } ?? false)
        recordings.append(
            Recording(
                app: item.person.app, event: item.event, ruleSet: found?.set.version, at: now, count: 1,
                body: .held(RecordedRelease(item, person))))
    }

    /// Adds a bucket with the decisions of its close, if there are any.
    ///
    /// - Parameter settings: `nil` if the user has none.
    package mutating func add(_ row: DueBucket, _ decisions: ArraySlice<DecisionRecord>, _ settings: PersonalSettings) {
        let app = row.key.person.app
        guard records(app), let first = decisions.first else { return }
        let person = RecordedPerson(Person(settings: settings), caps: [], readsPresence: false)
        recordings.append(
            Recording(
                app: app, event: first.event, ruleSet: first.ruleSet, at: now, count: decisions.count,
                body: .digest(RecordedClose(row, person))))
    }

    /// Sets the number of decisions of the event that was added last.
    package mutating func count(_ decisions: Int) {
        guard !recordings.isEmpty else { return }
        recordings[recordings.count - 1].count = decisions
    }
}
