import PushProtocol
import Yams

extension RuleFileReader {
    /// Reads `how`: the delivery options of a rule.
    func options(_ field: Field, _ shapes: [EventShape]) -> Rule.DeliveryOptions? {
        let keys = [
            "as", "lane", "sound", "badge", "category", "thread", "interruption-level", "expires-after", "collapse-key",
            "delivery", "privacy", "scope", "platforms", "unless", "apns", "fcm", "web",
        ]
        guard let table = table(field, keys: keys) else { return nil }
        let countsUnread = table["badge"].map(isUnread) ?? false
        return Rule.DeliveryOptions(
            kind: table["as"].flatMap { choice($0) } ?? .alert,
            privacy: table["privacy"].flatMap { choice($0) } ?? .full,
            lane: table["lane"].flatMap { choice($0) } ?? .interactive,
            sound: table["sound"].flatMap { text($0) },
            badge: countsUnread ? nil : table["badge"].flatMap { badge($0, shapes) },
            countsUnread: countsUnread,
            category: table["category"].flatMap { text($0) }, thread: table["thread"].flatMap { template($0, shapes) },
            interruptionLevel: table["interruption-level"].flatMap { choice($0) },
            expiresAfter: table["expires-after"].flatMap { duration($0) },
            delivery: table["delivery"].flatMap { choice($0) },
            collapseKey: table["collapse-key"].flatMap { template($0, shapes) },
            scope: table["scope"].flatMap { template($0, shapes) }, devices: devices(table, shapes),
            apns: table["apns"].flatMap { apns($0, shapes) }, fcm: table["fcm"].flatMap { fcm($0, shapes) },
            web: table["web"].flatMap { web($0, shapes) })
    }

    /// Whether the badge is `unread`: the number of unread inbox items.
    private func isUnread(_ field: Field) -> Bool {
        guard case .scalar(let scalar) = field.node else { return false }
        return ScalarValue.json(scalar) == .string("unread")
    }

    private func badge(_ field: Field, _ shapes: [EventShape]) -> DataTemplate? {
        guard let template = dataTemplate(field, shapes) else { return nil }
        switch template {
        case .value: return template
        case .constant(let value) where value.badgeNumber != nil: return template
        case .constant, .text, .array, .object:
            report(field, "a badge is \(JSONValue.badgeExpectation), one variable in quotes, or unread")
            return nil
        }
    }

    private func apns(_ field: Field, _ shapes: [EventShape]) -> Rule.APNsTemplate? {
        guard let table = table(field, keys: ["headers", "payload"]) else { return nil }
        var headers: [String: String]?
        for (name, value) in table["headers"].flatMap(members) ?? [] {
            guard name.hasPrefix("apns-"), name != "apns-id" else {
                report(value, "only apns-* headers except apns-id can be set here")
                continue
            }
            headers = headers ?? [:]
            headers?[name] = scalar(value)?.shown
        }
        return Rule.APNsTemplate(headers: headers, payload: table["payload"].flatMap { override($0, shapes) })
    }

    private func fcm(_ field: Field, _ shapes: [EventShape]) -> Rule.FCMTemplate? {
        table(field, keys: ["message", "dry-run"]).map { table in
            Rule.FCMTemplate(
                message: table["message"].flatMap { override($0, shapes) },
                validateOnly: table["dry-run"].flatMap { flag($0) })
        }
    }

    private func web(_ field: Field, _ shapes: [EventShape]) -> Rule.WebPushTemplate? {
        table(field, keys: ["message", "urgency"]).map { table in
            Rule.WebPushTemplate(
                urgency: table["urgency"].flatMap { choice($0) },
                message: table["message"].flatMap { override($0, shapes) })
        }
    }

    func flag(_ field: Field) -> Bool? {
        guard let value = scalar(field) else { return nil }
        guard case .bool(let flag) = value else {
            report(field, "expected true or false, not \(value.kind)")
            return nil
        }
        return flag
    }

    /// Reads an object that the sender merges into the provider's message.
    private func override(_ field: Field, _ shapes: [EventShape]) -> DataTemplate? {
        guard let value = json(field) else { return nil }
        guard case .object = value else {
            report(field, "expected keys with values, not \(value.kind)")
            return nil
        }
        return value.holdsBraces ? dataTemplate(field, shapes) : .constant(value)
    }
}

extension JSONValue {
    fileprivate var holdsBraces: Bool {
        switch self {
        case .null, .bool, .int, .double: false
        case .string(let text): text.contains("{{")
        case .array(let elements): elements.contains { $0.holdsBraces }
        case .object(let members): members.values.contains { $0.holdsBraces }
        }
    }
}
