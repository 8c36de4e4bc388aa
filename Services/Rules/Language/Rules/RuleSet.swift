package import FoundationEssentials
package import PushProtocol

/// One app's rule file: validated and immutable.
package struct RuleSet: Sendable {
    package let app: AppID
    /// Derived from the file's text: equal texts have equal versions in all processes.
    package let version: UUID
    /// The event types of the app, including types without a rule.
    package let events: Set<String>
    /// The settings for all rules. Its types include that of direct notifications.
    package let defaults: AppDefaults
    /// The rules of the file, in its order.
    package let rules: [Rule]
    /// How events report presence, reads, completed and revoked items.
    package let signals: [SignalSource]
    /// Whether events revoke items.
    package let revokesItems: Bool
    /// The events that replace the texts of notifications.
    package let replacements: [ReplacementSource]
    /// The receipts that complete items.
    package let doneByReceipts: [DoneByReceipt]
    /// The events that another app's publisher publishes.
    package let borrowedEvents: [BorrowedEvent]
    /// How events change groups.
    let memberships: [MembershipSource]
    /// The rules by event type, in the order of the file.
    private let rulesByEvent: [String: (rules: [Rule], index: RuleIndex)]
    private let positions: [String: Int]
    /// The stopped variants, by the names of their rules, with the time from which events have the first variant instead.
    package let stops: [String: Timestamp]
    /// The built-in rules for direct notifications, by name.
    let directRules: [String: Rule]

    package init(
        app: AppID, version: UUID, events: Set<String>, defaults: AppDefaults = AppDefaults(), rules: [Rule],
        signals: [SignalSource] = [], memberships: [MembershipSource] = [], doneByReceipts: [DoneByReceipt] = [],
        borrowedEvents: [BorrowedEvent] = [], replacements: [ReplacementSource] = []
    ) {
        self.app = app
        self.version = version
        self.events = events
        self.defaults = defaults.withDirectType
        directRules = DirectRule.rules(self.defaults)
        self.rules = rules
        self.signals = signals
        revokesItems = signals.contains { source in
            if case .revoke = source.kind { true } else { false }
        }
        self.memberships = memberships
        self.doneByReceipts = doneByReceipts
        self.borrowedEvents = borrowedEvents
        self.replacements = replacements
        positions = Dictionary(rules.enumerated().map { ($1.name, $0) }) { first, _ in first }
        stops = Dictionary(rules.compactMap { rule in rule.variant?.stoppedAt.map { (rule.name, $0) } }) {
            first, _ in first
        }
        var rulesByEvent: [String: [Rule]] = [:]
        for rule in rules {
            // A rule may name an event twice, as two updates of a live surface by one event do.
            for event in Set(rule.when.events) { rulesByEvent[event, default: []].append(rule) }
        }
        self.rulesByEvent = rulesByEvent.mapValues { ($0, RuleIndex($0.map(\.when))) }
    }

    /// Returns the rule set with other rules, and everything else unchanged.
    func with(_ rules: [Rule]) -> RuleSet {
        RuleSet(
            app: app, version: version, events: events, defaults: defaults, rules: rules, signals: signals,
            memberships: memberships, doneByReceipts: doneByReceipts, borrowedEvents: borrowedEvents,
            replacements: replacements)
    }

    /// The names of the rules whose notifications users notice, with the built-in ones.
    package var visibleRules: [String] {
        (rules + directRules.values).filter { $0.isUserVisible && $0.name != DirectRule.silent.rawValue }.map(\.name)
            .sorted()
    }

    /// The preference types by the names of their rules, with the built-in ones.
    package var typesByRule: [String: String] {
        Dictionary((rules + directRules.values).compactMap { rule in rule.policy.type.map { (rule.name, $0) } }) {
            first, _ in first
        }
    }

    /// Whether the items of decided events are stored, for revocations, replacements and receipts.
    package var storesItems: Bool { revokesItems || !replacements.isEmpty || !doneByReceipts.isEmpty }

    package func rules(for event: DomainEvent) -> [Rule] { candidates(for: event).filter { $0.when.holds(event) } }

    /// Returns the rules whose patterns must be evaluated for an event.
    ///
    /// Rules for other event types or other indexed values have no cost.
    func candidates(for event: DomainEvent) -> [Rule] {
        guard let (rules, index) = rulesByEvent[event.type] else { return [] }
        return index.candidates(for: event).map { rules[$0] }
    }

    /// Returns the rule with this name; `nil` if the file no longer has it. Built-in rules have a name too.
    package func rule(named name: String) -> Rule? { positions[name].map { rules[$0] } ?? directRules[name] }

    package func signals(of event: DomainEvent) throws(RenderError) -> [Signal] {
        guard !signals.isEmpty || !memberships.isEmpty else { return [] }
        let scope = Scope(event: event)
        var found: [Signal] = []
        for source in signals { if let signal = try source.signal(event, scope) { found.append(signal) } }
        for source in memberships { if let signal = try source.signal(event, scope) { found.append(signal) } }
        return found
    }

    /// Returns one draft for each rule that matches the event and has recipients.
    ///
    /// Pure: the same event, rules and times give the same drafts. If one matching rule cannot be rendered, there are
    /// no drafts, so the whole event can be replayed after a fix.
    ///
    /// - Parameters:
    ///   - now: the time of an event without a `time`.
    ///   - arrival: the time at which the lifetime of the notifications begins; `nil`: `now`.
    package func evaluate(
        _ event: DomainEvent, now: Timestamp = Timestamp(milliseconds: 0), arrivedAt arrival: Timestamp? = nil
    ) throws(RenderError) -> [NotificationDraft] {
        if event.type == DirectNotification.eventType {
            return [try directDraft(event, arrivedAt: arrival ?? now)]
        }
        var drafts: [NotificationDraft] = []
        let scope = scope(of: event, now: now)
        for rule in rules(for: event) {
            do {
                let draft = try rule.draft(event, scope, defaults, arrivedAt: arrival ?? now)
                if draft.hasRecipients { drafts.append(draft) }
            } catch {
                throw RenderError(rule: rule.name, place: error.place, problem: error.problem)
            }
        }
        if !replacements.isEmpty { drafts += try replacementDrafts(event, scope) }
        return drafts
    }

    /// Returns one rule's draft; `nil` if the rule is gone, does not match or has no recipients.
    ///
    /// - Parameter arrival: the time of an event without a `time`, and the begin of the notification's lifetime.
    package func evaluate(
        _ event: DomainEvent, by name: String, arrivedAt arrival: Timestamp
    ) throws(PlacedProblem) -> NotificationDraft? {
        if event.type == DirectNotification.eventType { return try directDraft(event, by: name, arrivedAt: arrival) }
        guard let rule = rule(named: name), rule.when.events.contains(event.type), rule.when.holds(event) else {
            return nil
        }
        let draft = try rule.draft(event, scope(of: event, now: arrival), defaults, arrivedAt: arrival)
        return draft.hasRecipients ? draft : nil
    }

    private func scope(of event: DomainEvent, now: Timestamp) -> Scope {
        var scope = Scope(event: event, localization: defaults.localization)
        if event.time == nil { scope.moment = now }
        return scope
    }
}

extension DomainEvent {
    /// The id of one thing of a kind, such as the text or the campaign, that a rule makes of the event.
    func derivedID(_ kind: String, rule: String) -> UUID {
        DerivedID.uuid5(DerivedID.namespace, [kind, source, id, "\(app)/\(rule)"])
    }
}

extension Rule {
    /// Renders the rule for one event and finds its recipients.
    fileprivate func draft(
        _ event: DomainEvent, _ scope: Scope, _ defaults: AppDefaults, arrivedAt arrival: Timestamp
    ) throws(PlacedProblem) -> NotificationDraft {
        func id(_ kind: String) -> UUID { event.derivedID(kind, rule: name) }
        var draft = NotificationDraft(
            rendered: RenderedNotification(
                id: id("saying"), app: event.app, rule: name, lane: audience == nil ? how.lane : .bulk,
                content: Content(), mutes: [], delivery: how.delivery, correlation: event.id,
                traceparent: event.traceparent),
            policy: policy, isUserVisible: isUserVisible, countsUnread: how.countsUnread, recipients: [],
            source: event.source,
            broadcast: try followed(scope).map { Broadcast(notification: id("broadcast"), to: $0) })
        draft.channels = try channels.map { channels throws(PlacedProblem) in
            SurfaceChannels(item: try name(channels.item, scope, "policy.item"), role: channels.role)
        }
        draft.rendered.isToChannels = draft.isToChannels
        if !draft.isToChannels { draft.groupReferences = try groupReferences(scope) }
        let audience = try audience(
            scope, now: event.time.map(Timestamp.init) ?? arrival, campaign: id("campaign"))
        draft.segment = try segment(event, scope, audience)
        draft.audience = draft.segment == nil ? audience : nil
        draft.variant = variant?.draw(at: arrival)
        let named = draft.isToChannels ? [] : try recipients(scope).filter { draft.concerns($0.user) }
        draft.recipients = named.map { named in
            Notification.Recipient(
                user: named.user, notification: draft.notificationID(of: named.user), badge: named.badge)
        }
        guard draft.hasRecipients else { return draft }
        let elements = isPersonal ? Dictionary(named.map { ($0.user, $0.element) }) { first, _ in first } : [:]
        // The common parts have the words of the first recipient, until each recipient gets their own.
        let scope = isPersonal ? named.first.map { scope.naming($0.element) } ?? scope : scope
        draft.rendered.scope = try tokenScope(scope)
        draft.rendered.devices = try deviceSelection(scope)
        let textScope = scope.delayed(by: surfaceDelay)
        let renderedText = try renderedText(textScope, defaults: defaults.language)
        draft.rendered.content = renderedText.content
        draft.rendered.preview = renderedText.preview
        draft.rendered.mutes = try mutes(scope)
        draft.terms = try terms(scope)
        draft.rendered.expiresAt = expiration(of: event, isPlanned: draft.terms.plan != nil, arrivedAt: arrival)
        draft.localizer = RecipientLocalizer(self, textScope, elements, defaults: defaults)
        try draft.localizer?.check()
        if let entry = draft.terms.entry { try checkSummary(entry, defaults) }
        return draft
    }

    /// Returns the earlier expiry of the rule and the event.
    ///
    /// The rule's expiry of a scheduled notification starts when it is due, so it does not count here.
    private func expiration(of event: DomainEvent, isPlanned: Bool, arrivedAt arrival: Timestamp) -> Timestamp? {
        let own = isPlanned ? nil : how.expiresAfter.map { arrival + $0 }
        return [own, event.expiresAt.map(Timestamp.init)].compactMap(\.self).min()
    }

    private func terms(_ scope: Scope) throws(PlacedProblem) -> NotificationDraft.Terms {
        var terms = NotificationDraft.Terms()
        if let item = policy.item { terms.item = try self.name(item, scope, "policy.item") }
        if terms.item?.isEmpty == true { terms.item = nil }
        terms.startsSurface = surface == .started
        terms.plan = try policy.schedule?.plan(scope)
        terms.entry = try policy.digest?.entry(rule: name, scope)
        if let dedupe = policy.dedupe {
            terms.dedupe = "\(name)/\(try self.name(dedupe.key, scope, "policy.dedupe.key"))"
        }
        return terms
    }
}
