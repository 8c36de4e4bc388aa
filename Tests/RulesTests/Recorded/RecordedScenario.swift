import Foundation
import PushProtocol
import TestSupport

@testable import RuleDryRun
@testable import RuleEngine
@testable import RuleLanguage

/// The decisions about one random scenario by random stored state, and their recordings.
struct RecordedScenario {
    let scenario: RandomScenario
    private let ruleSets: RuleSets
    private var random: SplitMix
    private(set) var recordings: [Recording] = []
    /// The decisions of each recording.
    private(set) var decisions: [[DecisionRecord]] = []
    private var gathered: [BucketKey: DueBucket] = [:]

    init(seed: UInt64) {
        scenario = RandomScenario(seed: seed, hasSurfaces: !seed.isMultiple(of: 3))
        ruleSets = RuleSets([scenario.rules])
        random = SplitMix(seed: seed ^ 0xDEC1)
        for one in scenario.occurrences { decide(one.event, at: one.at) }
        close()
    }

    private var app: AppID { scenario.rules.app }

    private mutating func chance(_ part: Int, of whole: Int) -> Bool {
        Int.random(in: 0..<whole, using: &random) < part
    }

    private mutating func pick<T>(_ choices: [T]) -> T { choices[Int.random(in: 0..<choices.count, using: &random)] }

    // MARK: - Events

    private mutating func decide(_ event: DomainEvent, at now: Timestamp) {
        let arrived = now - .seconds(pick([0, 0, 7, 4_000]))
        guard
            case .notify(let drafts, let signals, let set) = ruleSets.evaluate(event, now: now, arrivedAt: arrived)
        else { return }
        var recorder = DecisionRecorder([app], now: now)
        var one = EventCase(event, ruleSet: set, arrivedAt: arrived, drafts: drafts, signals: signals)
        let replaces = drafts.contains { $0.replacement != nil }
        let isPage = drafts.count == 1 && !replaces && chance(1, of: 8)
        if !isPage, !replaces, drafts.count > 1, chance(1, of: 8) {
            recorder.noteLargeAudience(of: drafts[0].rendered.rule, one)
            one.drafts.removeFirst()
        }
        let members = team()
        one.drafts = one.drafts.map { draft in
            guard !draft.groupReferences.isEmpty else { return draft }
            let groups = draft.groupReferences.map { ($0, members) }
            recorder.note(groups, of: one)
            return draft.joined(by: groups.flatMap { group, members in members.filter(group.accepts).map(\.user) })
        }
        if isPage {
            // Two recordings: the event with its large audience, and the step.
            var outer = DecisionRecorder([app], now: now)
            outer.noteLargeAudience(of: one.drafts[0].rendered.rule, one)
            var empty = one
            empty.drafts = []
            keep(empty, &outer, isPage: false, now)
            if chance(1, of: 2) { one.drafts[0].recipients.removeAll { $0.user.rawValue == "b" } }
        }
        one.drafts = one.drafts.flatMap { draft in replacing(draft, now) }
        keep(one, &recorder, isPage: isPage, now)
    }

    /// Gives a draft of `replace` random originals.
    private mutating func replacing(_ draft: NotificationDraft, _ now: Timestamp) -> [NotificationDraft] {
        guard draft.replacement != nil else { return [draft] }
        let originals = ["a", "b", "c"].filter { _ in chance(1, of: 2) }.map { id in
            ReplacedNotification(
                user: user(id), notification: DerivedID.uuid5(DerivedID.namespace, ["original", id]),
                state: pick([.waiting, .pushed, .pushed, .kept, .gone]), isAnswered: chance(3, of: 4),
                isInInbox: chance(3, of: 4), isRead: chance(1, of: 5), isRevoked: chance(1, of: 12),
                isOvertaken: chance(1, of: 12), expiresAt: chance(1, of: 4) ? now + .seconds(pick([-60, 3_600])) : nil,
                decidedAt: now - .seconds(pick([60, 700_000])))
        }
        return draft.replacing(originals, isTooLarge: chance(1, of: 30))
    }

    private mutating func keep(
        _ event: EventCase, _ recorder: inout DecisionRecorder, isPage: Bool, _ now: Timestamp
    ) {
        var people = people(now)
        let items = items(of: event, now)
        guard recorder.add(event, isPage: isPage, people, items) else { return }
        var event = event
        event.drafts = event.drafts.flatMap { $0.localized(people) }
        let decided = event.decisions(&people, items, now: now)
        recorder.count(decided.count)
        add(recorder, decided)
        var writes = DecisionWrites(decidedAt: now)
        writes.add(event, decided, people, spread: .zero)
        gather(writes.gathered)
        let rendered = Dictionary(writes.renderedNotifications.map { ($0.id, $0) }) { first, _ in first }
        for held in writes.held {
            if let text = rendered[held.rendered] { release(HeldItem(held, text, now)) }
        }
    }

    private mutating func add(_ recorder: DecisionRecorder, _ decided: [DecisionRecord]) {
        recordings += recorder.recordings
        decisions.append(decided)
    }

    // MARK: - Later decisions

    private mutating func release(_ held: HeldItem) {
        var item = held
        for _ in 0..<3 {
            guard item.leaving == nil, !item.isOver, let due = item.dueAt else { return }
            let now = due + .seconds(pick([0, 1, 5_000]))
            let found = chance(1, of: 20) ? nil : ruleSets.rule(of: item.rendered)
            var people = people(now)
            var recorder = DecisionRecorder([app], now: now)
            recorder.add(item, by: found, people)
            var writes = DecisionWrites(decidedAt: now)
            item.release(by: found, &people, &writes, spread: .zero)
            add(recorder, writes.decisions)
            gather(writes.gathered)
        }
    }

    private mutating func gather(_ new: [DecisionWrites.Gathered]) {
        for one in new {
            var row =
                gathered[one.key]
                ?? DueBucket(key: one.key, rule: one.rule, bucket: Bucket(plannedAt: one.item.from, items: []))
            var item = one.item
            item.wasSent = chance(1, of: 5)
            row.bucket.items.append(item)
            gathered[one.key] = row
        }
    }

    private mutating func close() {
        for key in gathered.keys.sorted() {
            guard var row = gathered[key] else { continue }
            let now = row.bucket.plannedAt + .seconds(3_600 * pick([0, 1, 9, 26]))
            if chance(1, of: 3) {
                let at = now - .seconds(3_600 * pick([1, 20, 50]))
                row.bucket.last = DigestTime.Occurrence(date: Zone.utc.local(at).date, at: at)
            }
            let settings = people(now)[key.person]?.settings ?? PersonalSettings()
            let gone = RuleSets([])
            var writes = DecisionWrites(decidedAt: now)
            var recorder = DecisionRecorder([app], now: now)
            let before = row
            try? row.close(by: chance(1, of: 20) ? gone : ruleSets, settings, &writes, now: now)
            recorder.add(before, writes.decisions[...], settings)
            if !recorder.recordings.isEmpty { add(recorder, writes.decisions) }
        }
    }

    // MARK: - Random state

    private mutating func team() -> [GroupReference.Member] {
        ["a", "b", "c"].filter { _ in chance(2, of: 3) }.map { id in
            GroupReference.Member(user: user(id), role: pick(["lead", "clerk", nil]))
        }
    }

    private mutating func people(_ now: Timestamp) -> [PersonKey: Person] {
        var people: [PersonKey: Person] = [:]
        for id in ["a", "b", "c"] where chance(5, of: 6) {
            var person = Person()
            if let settings = scenario.people[id], chance(3, of: 4) { person.settings = settings }
            if chance(1, of: 3) {
                person.leases = [
                    Person.Lease(viewing: pick(["t", "u", nil]), expiresAt: now + .seconds(pick([-5, 60])))
                ]
            }
            for cap in ["few", "day", "!critical"] where chance(1, of: 2) {
                let isCritical = cap == "!critical"
                let count = isCritical ? 20 : pick([1, 2, 3])
                let minutes = isCritical ? [1, 30] : [1, 30, 200, 1_400]
                person.capHistory[cap] = (0..<count).map { _ in now - .seconds(60 * pick(minutes)) }.sorted()
            }
            for rule in 0..<3 where chance(1, of: 3) {
                person.dedupeUntil["rule-\(rule)/\(pick(["t", "u"]))"] = now + .seconds(pick([-60, 600]))
            }
            people[PersonKey(app: app, user: user(id))] = person
        }
        return people
    }

    private mutating func items(of event: EventCase, _ now: Timestamp) -> ItemState {
        var state = ItemState()
        func at() -> Timestamp { event.record.occurredAt + .seconds(pick([-60, 0, 60])) }
        for name in ["item/i", "item/j"] + (event.items.map(\.item).filter { $0.hasPrefix("live/") }) {
            let key = ItemKey(app: app, item: name)
            if chance(1, of: 10) { state.done[key] = at() }
            if chance(1, of: 10) { state.doneByUser[.init(item: key, user: user(pick(["a", "b"])))] = at() }
            if chance(1, of: 10) { state.revoked.revoke(key, pick([nil, user("a")]), until: at()) }
            if chance(1, of: 6) {
                state.waiting[.init(item: key, rule: "rule-\(pick([0, 1, 2]))", user: user(pick(["a", "c"])))] = at()
            }
            if chance(1, of: 4) {
                for rule in event.drafts where rule.terms.plan?.every != nil {
                    state.overdue[.init(item: key, rule: rule.rendered.rule, user: user(pick(["a", "c"])))] = at()
                }
            }
        }
        if chance(1, of: 20) { state.revoked.events[event.record.key] = [pick([nil, user("b")])] }
        return state
    }
}
