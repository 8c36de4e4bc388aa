import FoundationEssentials
import PushProtocol

extension RuleSet {
    /// The rules of an app without a rule file: the built-in ones.
    static func builtIn(for app: AppID) -> RuleSet {
        RuleSet(
            app: app, version: DerivedID.uuid5(DerivedID.namespace, ["rule-set", "built-in"]), events: [], rules: [])
    }

    /// Returns the draft of a direct notification. Its texts are literal.
    ///
    /// Pure: the same event, rules and arrival give the same draft.
    ///
    /// - Throws: if the data is not a ``DirectNotification``, or the app does not have its type.
    func directDraft(_ event: DomainEvent, arrivedAt arrival: Timestamp) throws(RenderError) -> NotificationDraft {
        func refusal(_ problem: RenderError.Problem) -> RenderError {
            RenderError(rule: DirectRule.direct.rawValue, place: "data", problem: problem)
        }
        let direct: DirectNotification
        do { direct = try DirectNotification(event.data) } catch { throw refusal(RenderError.Problem(error)) }
        guard let rule = directRules[DirectRule(direct).name(type: direct.type ?? DirectNotification.defaultType)]
        else {
            let types = defaults.types.keys.sorted().joined(separator: ", ")
            throw refusal(.refused(path: "type", problem: "\(app) has no such type; choose one of \(types)"))
        }
        return draft(of: direct, by: rule, event, arrivedAt: arrival)
    }

    /// Returns the draft if it is that of the rule with this name; `nil` if the app no longer has the rule.
    func directDraft(
        _ event: DomainEvent, by name: String, arrivedAt arrival: Timestamp
    ) throws(PlacedProblem) -> NotificationDraft? {
        do {
            let draft = try directDraft(event, arrivedAt: arrival)
            return draft.rendered.rule == name ? draft : nil
        } catch {
            throw PlacedProblem(error.place, error.problem)
        }
    }

    private func draft(
        of direct: DirectNotification, by rule: Rule, _ event: DomainEvent, arrivedAt arrival: Timestamp
    ) -> NotificationDraft {
        let expiry = [direct.expiry(arrivedAt: arrival), event.expiresAt.map(Timestamp.init)].compactMap(\.self).min()
        var draft = NotificationDraft(
            rendered: RenderedNotification(
                id: event.derivedID("saying", rule: rule.name), app: event.app, rule: rule.name,
                lane: direct.isToAudience ? .bulk : direct.lane ?? .interactive, content: direct.content, mutes: [],
                expiresAt: expiry, correlation: event.id, traceparent: event.traceparent),
            policy: rule.policy, isUserVisible: direct.isVisible, countsUnread: false, recipients: [],
            source: event.source)
        switch direct.recipients {
        case .users(let users): draft.append(users)
        case .group(let name, let roles):
            draft.groupReferences = [GroupReference(group: name, roles: roles.map { Set($0) }, except: [])]
        case .audience(let group):
            draft.audience = Audience(campaign: event.derivedID("campaign", rule: rule.name), members: .group(group))
        case .everyone:
            draft.audience = Audience(campaign: event.derivedID("campaign", rule: rule.name), members: .everyone)
        }
        draft.terms.plan = direct.at.map {
            Schedule.Plan(due: .moment(Timestamp($0)), end: nil, time: Schedule.usualTime)
        }
        return draft
    }
}

extension RenderError.Problem {
    /// The problem of a direct notification's data.
    fileprivate init(_ error: WireError) {
        switch error {
        case .missing(let path): self = .missing(path: path)
        case .invalid(let path, let problem): self = .refused(path: path, problem: problem)
        default: self = .refused(path: "data", problem: "\(error)")
        }
    }
}
