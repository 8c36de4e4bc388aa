extension JSONValue {
    /// How many levels of arrays and objects it nests: 0 for a text or a number.
    package var depth: Int {
        switch self {
        case .null, .bool, .int, .double, .string: 0
        case .array(let elements): 1 + (elements.lazy.map(\.depth).max() ?? 0)
        case .object(let members): 1 + (members.values.lazy.map(\.depth).max() ?? 0)
        }
    }

    /// Bytes that its compact JSON does not exceed. A text may be escaped to six times its length, a number takes at most 25.
    package var byteBound: Int {
        switch self {
        case .null, .bool: 5
        case .int, .double: 25
        case .string(let text): 2 + 6 * text.utf8.count
        case .array(let elements): elements.reduce(2) { $0 + $1.byteBound + 1 }
        case .object(let members): members.reduce(2) { $0 + 6 * $1.key.utf8.count + $1.value.byteBound + 4 }
        }
    }
}

extension Content {
    /// How many levels its JSON nests, its own object included.
    package var depth: Int {
        var inner = 0
        if let data { inner = max(inner, JSONValue.object(data).depth) }
        if let apns { inner = max(inner, 1 + max(apns.headers == nil ? 0 : 1, apns.payload?.depth ?? 0)) }
        if let fcm { inner = max(inner, 1 + (fcm.message?.depth ?? 0)) }
        return 1 + inner
    }

    /// Bytes that its compact JSON does not exceed.
    package var byteBound: Int {
        // The names of the members, the braces and the short values take less than 400 bytes.
        var bytes = 400
        for text in [title, subtitle, body, sound, category, thread, deepLink, image, collapseKey] {
            if let text { bytes += JSONValue.string(text).byteBound }
        }
        if let data { bytes += JSONValue.object(data).byteBound }
        for (name, value) in apns?.headers ?? [:] {
            bytes += JSONValue.string(name).byteBound + JSONValue.string(value).byteBound + 2
        }
        return bytes + (apns?.payload?.byteBound ?? 0) + (fcm?.message?.byteBound ?? 0)
    }
}
