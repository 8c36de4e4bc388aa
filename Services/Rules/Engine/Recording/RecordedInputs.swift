package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

/// The stored state that the decisions about an event read.
package struct RecordedInputs: Codable, Hashable, Sendable {
    /// By user id.
    package var people: [String: RecordedPerson]
    /// The members of the groups whose members are recipients.
    package var groups: [String: [Member]]?
    package var items: RecordedItems?
    /// By rule: the notifications that the event replaces.
    package var replaced: [String: [ReplacedNotification]]?
    /// By rule: the labels of the broadcast channels that are its recipients.
    package var channels: [String: [UserID]]?
    /// The rules whose item has too many notifications to replace.
    package var tooManyReplaced: [String]?
    /// The stopped variants, by the names of their rules.
    package var stopped: [String: Timestamp]?

    package struct Member: Codable, Hashable, Sendable {
        package var user: UserID
        package var role: String?

        package init(user: UserID, role: String? = nil) {
            self.user = user
            self.role = role
        }
    }

    package init(people: [String: RecordedPerson] = [:], groups: [String: [Member]]? = nil) {
        self.people = people
        self.groups = groups
    }

    /// - Parameters:
    ///   - event: the event with all recipients, before its texts are localized.
    ///   - groups: the members of the groups that are recipients.
    ///   - people: the users before the event's decisions.
    package init(
        _ event: EventCase, groups: [String: [Member]] = [:], _ people: [PersonKey: Person], _ items: ItemState
    ) {
        self.init(groups: groups.isEmpty ? nil : groups)
        for draft in event.drafts where !draft.hasUnknownRecipients { add(draft, event, people) }
        self.items = RecordedItems(event, items)
        stopped = event.stops.isEmpty ? nil : event.stops
        for draft in event.drafts where draft.isToChannels {
            channels = (channels ?? [:]).merging([draft.rendered.rule: draft.recipients.map(\.user)]) { $1 }
        }
        for draft in event.drafts {
            guard let replacement = draft.replacement else { continue }
            let rule = draft.rendered.rule
            if replacement.isTooLarge { tooManyReplaced = (tooManyReplaced ?? []) + [rule] }
            guard let original = replacement.original else { continue }
            replaced = (replaced ?? [:]).merging([rule: [original]], uniquingKeysWith: +)
        }
    }

    private mutating func add(_ draft: NotificationDraft, _ event: EventCase, _ people: [PersonKey: Person]) {
        let caps = event.defaults.capNames(draft.policy)
        let dedupe = Set([draft.terms.dedupe].compactMap(\.self))
        let readsPresence = draft.isUserVisible && draft.policy.presence != .ignored
        for recipient in draft.recipients {
            guard let person = people[PersonKey(app: event.record.app, user: recipient.user)] else { continue }
            let recorded = RecordedPerson(person, caps: caps, dedupe: dedupe, readsPresence: readsPresence)
            add(recorded, of: recipient.user.rawValue)
        }
    }

    /// Adds the inputs of one notification to those of the event's other notifications.
    private mutating func add(_ recorded: RecordedPerson, of user: String) {
        guard var known = people[user] else {
            people[user] = recorded
            return
        }
        known.presence = known.presence ?? recorded.presence
        known.caps = (known.caps ?? [:]).merging(recorded.caps ?? [:]) { first, _ in first }
        known.dedupe = (known.dedupe ?? [:]).merging(recorded.dedupe ?? [:]) { first, _ in first }
        if known.caps?.isEmpty == true { known.caps = nil }
        if known.dedupe?.isEmpty == true { known.dedupe = nil }
        people[user] = known
    }
}

/// The state of an event's items, as far as it changes decisions about the event.
package struct RecordedItems: Codable, Hashable, Sendable {
    /// The items that are done for all users.
    package var done: [Mark]?
    /// The items that are done for one user.
    package var doneByUser: [Mark]?
    /// The items that are revoked, for one user or for all.
    package var revoked: [Mark]?
    /// The later notifications that wait.
    package var waiting: [Mark]?
    /// The due times of replaced notifications that were due.
    package var overdue: [Mark]?
    /// The users for whom the event is revoked; null stands for all users.
    package var revokedEvent: [UserID?]?

    package struct Mark: Codable, Hashable, Sendable {
        package var item: String
        package var rule: String?
        package var user: UserID?
        package var at: Timestamp
    }

    /// - Returns: `nil` if no state changes a decision.
    package init?(_ event: EventCase, _ state: ItemState) {
        let (app, moment) = (event.record.app, event.record.occurredAt)
        let keys = Set(event.items)
        func marks(_ marks: [Mark]) -> [Mark]? {
            let current = marks.filter { $0.at >= moment && keys.contains(ItemKey(app: app, item: $0.item)) }
            return current.isEmpty ? nil : current.sorted { $0.order < $1.order }
        }
        done = marks(state.done.filter { $0.key.app == app }.map { Mark(item: $0.key.item, at: $0.value) })
        doneByUser = marks(
            state.doneByUser.filter { $0.key.item.app == app }.map { key, at in
                Mark(item: key.item.item, user: key.user, at: at)
            })
        revoked = marks(
            state.revoked.items.filter { $0.key.app == app }.flatMap { key, moments in
                moments.map { Mark(item: key.item, user: $0.key, at: $0.value) }
            })
        let users = Set(event.drafts.flatMap { $0.recipients.map(\.user) })
        func slots(_ moments: [ItemState.Slot: Timestamp]) -> [Mark] {
            moments.filter { keys.contains($0.key.item) && users.contains($0.key.user) }.map { slot, at in
                Mark(item: slot.item.item, rule: slot.rule, user: slot.user, at: at)
            }
        }
        waiting = marks(slots(state.waiting))
        let due = slots(state.overdue).sorted { $0.order < $1.order }
        overdue = due.isEmpty ? nil : due
        revokedEvent = state.revoked.events[event.record.key].map { users in
            users.sorted { ($0?.rawValue ?? "") < ($1?.rawValue ?? "") }
        }
        if done == nil, doneByUser == nil, revoked == nil, waiting == nil, overdue == nil, revokedEvent == nil {
            return nil
        }
    }

    /// The state for decisions about an event with this key.
    package func state(app: AppID, event: UUID) -> ItemState {
        var state = ItemState()
        func key(_ mark: Mark) -> ItemKey { ItemKey(app: app, item: mark.item) }
        for mark in done ?? [] { state.done[key(mark)] = mark.at }
        for mark in doneByUser ?? [] {
            if let user = mark.user { state.doneByUser[ItemState.UserItem(item: key(mark), user: user)] = mark.at }
        }
        for mark in revoked ?? [] { state.revoked.revoke(key(mark), mark.user, until: mark.at) }
        func slots(_ marks: [Mark]?) -> [ItemState.Slot: Timestamp] {
            var moments: [ItemState.Slot: Timestamp] = [:]
            for mark in marks ?? [] {
                guard let rule = mark.rule, let user = mark.user else { continue }
                moments[ItemState.Slot(item: key(mark), rule: rule, user: user)] = mark.at
            }
            return moments
        }
        state.waiting = slots(waiting)
        state.overdue = slots(overdue)
        state.revoked.events[event] = revokedEvent.map { Set($0) }
        return state
    }
}

extension RecordedItems.Mark {
    fileprivate var order: (String, String, String) { (item, rule ?? "", user?.rawValue ?? "") }
}
