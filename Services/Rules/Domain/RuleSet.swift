import FoundationEssentials
import PushProtocol

/// All that one app's rule file says: validated, immutable, pure.
struct RuleSet: Sendable {
    let app: AppID
    /// Follows from the file's text: the same text is the same version everywhere.
    let version: UUID
    /// The event types the app knows, those included that nobody is told about.
    let events: Set<String>
    /// What holds for all rules.
    let house: HouseRules
    let rules: [Rule]
    /// How events tell about people.
    let signals: [SignalSource]
    /// The rules that an event of a type can concern, in the order of the file.
    private let rulesByEvent: [String: (rules: [Rule], index: RuleIndex)]

    init(
        app: AppID, version: UUID, events: Set<String>, house: HouseRules = HouseRules(), rules: [Rule],
        signals: [SignalSource] = []
    ) {
        self.app = app
        self.version = version
        self.events = events
        self.house = house
        self.rules = rules
        self.signals = signals
        var rulesByEvent: [String: [Rule]] = [:]
        for rule in rules {
            for event in rule.when.events { rulesByEvent[event, default: []].append(rule) }
        }
        self.rulesByEvent = rulesByEvent.mapValues { ($0, RuleIndex($0.map(\.when))) }
    }

    /// The rules that speak about this event.
    func rules(for event: DomainEvent) -> [Rule] { candidates(for: event).filter { $0.when.holds(event) } }

    /// The rules whose patterns are tried on this event: rules about other events, and those that ask for other values,
    /// cost nothing.
    func candidates(for event: DomainEvent) -> [Rule] {
        guard let (rules, index) = rulesByEvent[event.type] else { return [] }
        return index.candidates(for: event).map { rules[$0] }
    }

    /// The rule of a name; `nil` for one that the file no longer has.
    func rule(named name: String) -> Rule? { rules.first { $0.name == name } }

    /// What an event tells about people.
    func signals(of event: DomainEvent) throws(RenderError) -> [Signal] {
        guard !signals.isEmpty else { return [] }
        let scope = Scope(event: event)
        var found: [Signal] = []
        for source in signals { if let signal = try source.signal(event, scope) { found.append(signal) } }
        return found
    }

    /// What an event means to this app: one draft for each rule that matches and reaches somebody.
    ///
    /// Pure: the same event and rules give the same drafts. All or nothing: if one matching rule cannot be rendered, none
    /// is, so that the event can be replayed as a whole once the cause is mended.
    func evaluate(_ event: DomainEvent) throws(RenderError) -> [NotificationDraft] {
        var drafts: [NotificationDraft] = []
        let scope = Scope(event: event)
        for rule in rules(for: event) {
            do {
                let recipients = try rule.recipients(scope)
                guard !recipients.isEmpty else { continue }
                drafts.append(
                    NotificationDraft(
                        rule: rule.name, lane: rule.how.lane, content: try rule.content(scope),
                        expiresAfter: rule.how.expiresAfter, delivery: rule.how.delivery,
                        countsUnread: rule.how.countsUnread, isNoise: rule.how.kind == .alert, policy: rule.policy,
                        mutes: try rule.mutes(scope),
                        recipients: recipients))
            } catch {
                throw RenderError(rule: rule.name, place: error.place, problem: error.problem)
            }
        }
        return drafts
    }
}
