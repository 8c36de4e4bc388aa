extension JSONValue {
    /// The nesting of arrays and objects: 0 for strings and numbers.
    package var depth: Int {
        switch self {
        case .null, .bool, .int, .double, .string: 0
        case .array(let elements): 1 + (elements.lazy.map(\.depth).max() ?? 0)
        case .object(let members): 1 + (members.values.lazy.map(\.depth).max() ?? 0)
        }
    }

    /// An upper bound for the size of the compact JSON, in bytes. Escaping makes a string at most six times longer; a
    /// number takes at most 25 bytes.
    package var maximumEncodedSize: Int {
        switch self {
        case .null, .bool: 5
        case .int, .double: 25
        case .string(let text): 2 + 6 * text.utf8.count
        case .array(let elements): elements.reduce(2) { $0 + $1.maximumEncodedSize + 1 }
        case .object(let members): members.reduce(2) { $0 + 6 * $1.key.utf8.count + $1.value.maximumEncodedSize + 4 }
        }
    }
}

extension Content {
    /// The nesting of the content's JSON, its own object included.
    package var depth: Int {
        var inner = 0
        if let data { inner = max(inner, JSONValue.object(data).depth) }
        if let apns {
            inner = max(inner, 1 + max(apns.headers == nil && apns.channels == nil ? 0 : 1, apns.payload?.depth ?? 0))
        }
        if let fcm { inner = max(inner, 1 + (fcm.message?.depth ?? 0)) }
        if let web { inner = max(inner, 1 + (web.message?.depth ?? 0)) }
        return 1 + inner
    }

    /// An upper bound for the size of the content's compact JSON, in bytes.
    package var maximumEncodedSize: Int {
        // Names, braces and short values take less than 400 bytes.
        var bytes = 400
        for text in [title, subtitle, body, sound, category, thread, deepLink, image, collapseKey] {
            if let text { bytes += JSONValue.string(text).maximumEncodedSize }
        }
        if let data { bytes += JSONValue.object(data).maximumEncodedSize }
        for (name, value) in apns?.headers ?? [:] {
            bytes += JSONValue.string(name).maximumEncodedSize + JSONValue.string(value).maximumEncodedSize + 2
        }
        for (name, channel) in apns?.channels ?? [:] {
            bytes += JSONValue.string(name).maximumEncodedSize + channel.rawValue.utf8.count + 4
        }
        for value in [apns?.payload, fcm?.message, web?.message] { bytes += value?.maximumEncodedSize ?? 0 }
        return bytes
    }
}
