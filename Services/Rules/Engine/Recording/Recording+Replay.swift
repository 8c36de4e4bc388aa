package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

/// The reason why the decisions of a recording cannot be made again.
package enum ReplayObstacle: String, Error, Hashable, Sendable, CaseIterable {
    /// Another version of the rules decided.
    case otherRules = "other-rules"
    /// The recording of the event is deleted, or before the begin of the replay.
    case noEvent = "no-event"
    /// The rules refuse the event.
    case refused
}

extension Recording {
    /// Makes the decisions again from the recorded inputs.
    ///
    /// - Parameter event: returns the recorded event with this key, for a step of a fan-out.
    package func replayed(
        by ruleSets: RuleSets, _ event: (UUID) -> StoredEvent?
    ) throws(ReplayObstacle) -> [DecisionRecord] {
        if let ruleSet, ruleSets[app]?.version != ruleSet { throw .otherRules }
        switch body {
        case .event(let recorded): return try recorded.decisions(by: ruleSets, now: at)
        case .page(let page):
            guard let stored = event(self.event) else { throw .noEvent }
            return try page.decisions(of: stored.event, by: ruleSets, now: at)
        case .held(let held): return [held.decision(by: ruleSet == nil ? nil : ruleSets[app], self)]
        case .digest(let close): return close.decisions(by: ruleSet == nil ? nil : ruleSets[app], app: app, now: at)
        }
    }
}

extension RecordedEvent {
    fileprivate func decisions(by ruleSets: RuleSets, now: Timestamp) throws(ReplayObstacle) -> [DecisionRecord] {
        let event = event.event
        let ruleSets = ruleSets.stopping([event.app: inputs.stopped ?? [:]])
        guard case .notify(let drafts, let signals, let set) = ruleSets.evaluate(event, now: now, arrivedAt: arrived)
        else { throw .refused }
        var one = EventCase(event, ruleSet: set, arrivedAt: arrived, drafts: drafts, signals: signals)
        one.drafts = drafts.filter { large?.contains($0.rendered.rule) != true }.map { draft in
            if draft.isToChannels { return draft.addressed(to: inputs.channels?[draft.rendered.rule] ?? []) }
            guard !draft.groupReferences.isEmpty else { return draft }
            return draft.joined(
                by: draft.groupReferences.flatMap { reference in
                    inputs.members(of: reference.group).filter(reference.accepts).map(\.user)
                })
        }
        one.drafts = one.drafts.flatMap { draft in
            draft.replacing(
                inputs.replaced?[draft.rendered.rule] ?? [],
                isTooLarge: inputs.tooManyReplaced?.contains(draft.rendered.rule) ?? false)
        }
        return one.decisions(inputs, now: now)
    }
}

extension RecordedPage {
    /// The event with the notification to the users of this step; `nil` if the rule is gone.
    package func eventCase(of event: DomainEvent, by set: RuleSet) -> EventCase? {
        let set = set.stopping(inputs.stopped ?? [:])
        guard var draft = try? set.evaluate(event, by: rule, arrivedAt: arrived) else { return nil }
        let users = Set(users)
        draft.recipients.removeAll { !users.contains($0.user) }
        draft = draft.joined(by: self.users)
        return EventCase(event, ruleSet: set, arrivedAt: arrived, drafts: [draft])
    }

    fileprivate func decisions(
        of event: DomainEvent, by ruleSets: RuleSets, now: Timestamp
    ) throws(ReplayObstacle) -> [DecisionRecord] {
        guard let set = ruleSets[event.app], let one = eventCase(of: event, by: set) else { throw .refused }
        return one.decisions(inputs, now: now)
    }
}

extension EventCase {
    fileprivate func decisions(_ inputs: RecordedInputs, now: Timestamp) -> [DecisionRecord] {
        var people = inputs.people(of: record.app)
        var event = self
        event.drafts = event.drafts.flatMap { $0.localized(people) }
        let state = inputs.items?.state(app: record.app, event: record.key) ?? ItemState()
        return event.decisions(&people, state, now: now)
    }
}

extension RecordedInputs {
    package func people(of app: AppID) -> [PersonKey: Person] {
        var all: [PersonKey: Person] = [:]
        for (id, recorded) in people {
            if let user = UserID(rawValue: id) { all[PersonKey(app: app, user: user)] = recorded.person }
        }
        return all
    }

    package func members(of group: String) -> [GroupReference.Member] {
        (groups?[group] ?? []).map { GroupReference.Member(user: $0.user, role: $0.role) }
    }
}

extension RecordedRelease {
    /// - Parameter set: `nil` if the app no longer had the rule.
    fileprivate func decision(by set: RuleSet?, _ recording: Recording) -> DecisionRecord {
        var person = person.person
        let decision =
            set.flatMap { set in set.rule(named: rule).map { (set, $0) } }.map { set, rule in
                DecisionEngine(defaults: set.defaults, now: recording.at).decide(terms.input(rule), &person)
            } ?? RuleDecision(answer: .inbox, reason: .ruleGone)
        return DecisionRecord(
            notification: notification, step: step, event: recording.event, rule: rule,
            person: PersonKey(app: recording.app, user: user), decision: decision, ruleSet: recording.ruleSet)
    }
}

extension RecordedClose {
    fileprivate func decisions(by set: RuleSet?, app: AppID, now: Timestamp) -> [DecisionRecord] {
        var last: DigestTime.Occurrence?
        if let lastDay, let lastAt { last = DigestTime.Occurrence(date: LocalDate(dayNumber: lastDay), at: lastAt) }
        let bucketItems = items.map { item in
            var one = Bucket.Item(
                name: "", notification: item.notification, event: item.event, correlation: "", values: .null,
                saidAt: item.from, from: item.from, end: item.end, wasSent: item.sent == true)
            one.step = item.step
            return one
        }
        var row = DueBucket(
            key: BucketKey(person: PersonKey(app: app, user: user), bucket: bucket), rule: rule,
            bucket: Bucket(plannedAt: planned, last: last, items: bucketItems))
        return row.decideClose(by: set, person.person.settings, now: now)
    }
}
