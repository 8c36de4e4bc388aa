package import PushProtocol

extension Rule {
    /// Additions to the APNs request, with variables in the payload.
    package struct APNsTemplate: Hashable, Sendable {
        /// `apns-*` headers.
        var headers: [String: String]?
        /// Merged into the payload.
        var payload: DataTemplate?
    }

    /// Additions to the FCM message, with variables.
    package struct FCMTemplate: Hashable, Sendable {
        /// Merged into the message.
        var message: DataTemplate?
        /// See ``FCMOverride/validateOnly``.
        var validateOnly: Bool?
    }

    /// Additions to the Web Push request, with variables in the message.
    package struct WebPushTemplate: Hashable, Sendable {
        var urgency: WebPushOverride.Urgency?
        /// Merged into the message.
        var message: DataTemplate?
    }

    /// Renders the kind's headers and payload, overlaid by the rule's own.
    package func apns(_ scope: Scope) throws(PlacedProblem) -> APNsOverride? {
        let own = try how.apns?.payload?.object(scope, "how.apns.payload")
        guard let pushType = how.kind.pushType else {
            return how.apns.map { APNsOverride(headers: $0.headers, payload: own) }
        }
        var headers = how.apns?.headers ?? [:]
        headers["apns-push-type"] = pushType
        var payload = try say.payload.map(DataTemplate.object)?.object(scope, "say.payload") ?? [:]
        if let activity = say.activity {
            payload = .object(["aps": .object(try activity.render(scope, sound: how.sound))])
        }
        if how.kind == .widgets || how.kind == .controls { payload = ["aps": ["content-changed": true]] }
        if let own { payload = payload.merging(own) }
        return APNsOverride(headers: headers, payload: payload == [:] ? Optional.none : payload)
    }

    /// Renders the rule's additions to the FCM message. Urgent kinds have Android priority `HIGH`, so FCM does not delay
    /// them.
    package func fcm(_ scope: Scope) throws(PlacedProblem) -> FCMOverride? {
        let own = try how.fcm?.message?.object(scope, "how.fcm.message")
        guard how.kind.isUrgent else {
            return how.fcm.map { FCMOverride(message: own, validateOnly: $0.validateOnly) }
        }
        let urgent: JSONValue = ["android": ["priority": "HIGH"]]
        return FCMOverride(message: own.map(urgent.merging) ?? urgent, validateOnly: how.fcm?.validateOnly)
    }

    /// Renders the rule's additions to the Web Push request.
    package func web(_ scope: Scope) throws(PlacedProblem) -> WebPushOverride? {
        guard let web = how.web else { return nil }
        return WebPushOverride(urgency: web.urgency, message: try web.message?.object(scope, "how.web.message"))
    }
}

extension Rule.DeliveryOptions {
    /// The variables of ``apns``, ``fcm`` and ``web``.
    var overrideTags: [TemplateTag] {
        [apns?.payload, fcm?.message, web?.message].flatMap { $0?.tags ?? [] }
    }

    /// Removes the members of ``apns``, ``fcm`` and ``web`` that have variables.
    mutating func removeVariableOverrides() {
        let (payload, message) = (apns?.payload?.withoutVariables, fcm?.message?.withoutVariables)
        let webMessage = web?.message?.withoutVariables
        apns?.payload = payload
        fcm?.message = message
        web?.message = webMessage
    }
}

extension DataTemplate {
    /// The template without members and elements that have variables; `nil` for a variable.
    fileprivate var withoutVariables: DataTemplate? {
        switch self {
        case .constant: self
        case .value, .text: nil
        case .array(let elements): .array(elements.compactMap(\.withoutVariables))
        case .object(let members):
            .object(
                members.compactMap { member in
                    member.value.withoutVariables.map { Member(name: member.name, value: $0) }
                })
        }
    }
}
