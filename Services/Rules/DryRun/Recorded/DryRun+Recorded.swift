import PushProtocol
import RuleEngine
import RuleLanguage

extension DryRun {
    /// Processes a recorded event by these rules, with the users and groups of that time. A recorded decision on a held
    /// notification or a digest updates its user.
    ///
    /// Caps and dedupe keys begin with the recorded ones. From then on, the dry run's own pushes count.
    ///
    /// - Parameter event: returns the recorded event with this key, for a step of a fan-out.
    mutating func process(_ recording: Recording, _ event: (Recording) -> StoredEvent?) {
        let now = recording.at
        switch recording.body {
        case .event(let recorded):
            advance(to: now)
            take(recorded.inputs, of: recording)
            decide(recorded.event.event, now, arrivedAt: recorded.arrived, without: Set(recorded.large ?? []))
        case .page(let page):
            advance(to: now)
            take(page.inputs, of: recording)
            guard let event = event(recording)?.event, let set = ruleSets[event.app],
                let one = page.eventCase(of: event, by: set)
            else { return }
            predictDecisions(one, now)
        case .held(let held):
            take(held.person, PersonKey(app: recording.app, user: held.user))
            advance(to: now)
        case .digest(let close):
            take(close.person, PersonKey(app: recording.app, user: close.user))
            advance(to: now)
        }
    }

    private mutating func take(_ inputs: RecordedInputs, of recording: Recording) {
        let app = recording.app
        ruleSets = ruleSets.stopping([app: inputs.stopped ?? [:]])
        for (id, person) in inputs.people {
            if let user = UserID(rawValue: id) { take(person, PersonKey(app: app, user: user)) }
        }
        for group in (inputs.groups ?? [:]).keys {
            groups[GroupKey(app: app, group: group)] = DryRunGroup(inputs.members(of: group), at: recording.at)
        }
        guard let state = inputs.items?.state(app: app, event: recording.event) else { return }
        done.merge(state.done) { max($0, $1) }
        doneByUser.merge(state.doneByUser) { max($0, $1) }
        revoked.events.merge(state.revoked.events) { $0.union($1) }
        for (item, moments) in state.revoked.items {
            for (user, moment) in moments { revoked.revoke(item, user, until: moment) }
        }
    }

    private mutating func take(_ recorded: RecordedPerson, _ key: PersonKey) {
        let former = people[key] ?? Person()
        var person = recorded.person
        if recorded.presence == nil { person.leases = former.leases }
        person.capHistory = former.capHistory.merging(person.capHistory) { own, _ in own }
        person.dedupeUntil = former.dedupeUntil.merging(person.dedupeUntil) { own, _ in own }
        people[key] = person
    }
}
