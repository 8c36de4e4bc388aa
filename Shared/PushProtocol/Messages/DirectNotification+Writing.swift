import FoundationEssentials

extension DirectNotification {
    /// The event's data. Reading it gives an equal value.
    package var json: JSONValue {
        var members: [String: JSONValue] = ["content": .object(contentMembers)]
        switch recipients {
        case .users(let users): members["users"] = .array(users.map { .string($0.rawValue) })
        case .group(let name, let roles):
            members["group"] = .string(name)
            members["roles"] = roles.map { .array($0.map(JSONValue.string)) }
        case .audience(.topic(let name)): members["topic"] = .string(name.rawValue)
        case .audience(.tag(let name)): members["tag"] = .string(name.rawValue)
        case .everyone: members["everyone"] = true
        }
        members["type"] = type.map(JSONValue.string)
        members["lane"] = (lane?.rawValue).map(JSONValue.string)
        members["at"] = at.map { .string(RFC3339.string(from: $0)) }
        members["expires"] = expires.map { .string(RFC3339.string(from: $0)) }
        members["ttl"] = ttl.map { .int($0.components.seconds) }
        members["collapse"] = content.collapseKey.map(JSONValue.string)
        if content.silent { members["silent"] = true }
        if isPushOnly { members["pushOnly"] = true }
        return .object(members)
    }

    private var contentMembers: [String: JSONValue] {
        let texts = [
            "title": content.title, "subtitle": content.subtitle, "body": content.body, "sound": content.sound,
            "image": content.image, "link": content.deepLink, "category": content.category, "thread": content.thread,
            "interruptionLevel": content.interruptionLevel?.rawValue,
        ]
        var members = texts.compactMapValues { $0.map(JSONValue.string) }
        members["badge"] = content.badge.map { .int(Int64($0)) }
        members["data"] = content.data.map(JSONValue.object)
        members["apns"] = content.apns.map { apns in
            var block: [String: JSONValue] = [:]
            block["headers"] = apns.headers.map { .object($0.mapValues(JSONValue.string)) }
            block["payload"] = apns.payload
            return .object(block)
        }
        members["fcm"] = content.fcm.map { fcm in
            var block: [String: JSONValue] = [:]
            block["message"] = fcm.message
            block["validateOnly"] = fcm.validateOnly.map(JSONValue.bool)
            return .object(block)
        }
        members["web"] = content.web.map { web in
            var block: [String: JSONValue] = [:]
            block["message"] = web.message
            block["urgency"] = (web.urgency?.rawValue).map(JSONValue.string)
            return .object(block)
        }
        return members
    }
}
