import Primitives
import PushProtocol

extension RuleFileReader {
    /// Reads `platforms` and `unless` of a rule's `how`; `nil` if it has neither.
    func devices(_ table: [String: Field], _ shapes: [EventShape]) -> Rule.DeviceTemplate? {
        guard table["platforms"] != nil || table["unless"] != nil else { return nil }
        return Rule.DeviceTemplate(
            platforms: table["platforms"].flatMap(oneOrMore)?.compactMap { choice($0) },
            unless: table["unless"].flatMap { registered($0, shapes) })
    }

    private func registered(_ field: Field, _ shapes: [EventShape]) -> Rule.DeviceTemplate.Registered? {
        guard let table = table(field, keys: ["registered", "scope"], required: ["registered"]),
            let kind: RegistrationKind = table["registered"].flatMap({ choice($0) })
        else { return nil }
        return Rule.DeviceTemplate.Registered(kind: kind, scope: table["scope"].flatMap { template($0, shapes) })
    }

    /// Reports a device selection that a rule's recipients or digest cannot have.
    func checkDevices(_ rule: Rule, _ field: Field) {
        guard let devices = rule.how.devices else { return }
        if rule.following != nil {
            report(field, "“platforms” and “unless” select registered devices; a provider's subscribers have none here")
        }
        if rule.audience != nil, rule.segment == nil, devices.unless != nil {
            report(field, "“unless” needs named users or a group: an audience takes only “platforms”")
        }
        if rule.policy.digest != nil, devices.unless?.scope != nil {
            report(field, "“unless.scope” is about one event, and a digest about several; remove the scope")
        }
        if let platforms = devices.platforms, !platforms.contains(.apple), rule.how.kind.isAppleOnly,
            rule.how.fcm == nil
        {
            report(field, "“as: \(rule.how.kind.rawValue)” is for Apple devices only; add “apple” to “platforms”")
        }
    }
}

extension Rule.DeliveryOptions.Kind {
    /// Whether only Apple devices have tokens of the kind.
    fileprivate var isAppleOnly: Bool {
        switch self {
        case .alert, .silent, .badgeOnly, .voip, .pushToTalk: false
        case .liveActivity, .location, .complication, .fileProvider, .mdm, .widgets, .controls: true
        }
    }
}
