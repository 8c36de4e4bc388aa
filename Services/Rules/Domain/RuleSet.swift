import FoundationEssentials
import PushProtocol

/// All that one app's rule file says: validated, immutable, pure.
struct RuleSet: Sendable {
    let app: AppID
    /// Follows from the file's text: the same text is the same version everywhere.
    let version: UUID
    /// The event types the app knows, those included that nobody is told about.
    let events: Set<String>
    let rules: [Rule]
    /// The rules that an event of a type can concern, in the order of the file: rules about other events cost nothing.
    private let rulesByEvent: [String: [Rule]]

    init(app: AppID, version: UUID, events: Set<String>, rules: [Rule]) {
        self.app = app
        self.version = version
        self.events = events
        self.rules = rules
        var rulesByEvent: [String: [Rule]] = [:]
        for rule in rules {
            for event in rule.when.events { rulesByEvent[event, default: []].append(rule) }
        }
        self.rulesByEvent = rulesByEvent
    }

    /// The rules that speak about this event.
    func rules(for event: DomainEvent) -> [Rule] {
        rulesByEvent[event.type, default: []].filter { $0.when.holds(event) }
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
                        recipients: recipients))
            } catch {
                throw RenderError(rule: rule.name, place: error.place, problem: error.problem)
            }
        }
        return drafts
    }
}
