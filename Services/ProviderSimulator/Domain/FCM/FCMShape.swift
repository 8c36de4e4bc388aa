/// The JSON shape of an FCM v1 field, as Google's JSON-to-protobuf mapping reads it.
indirect enum FCMShape: Sendable {
    case string
    case bool
    case integer
    case number
    /// Decimal seconds and `s`, at most nine fraction digits.
    case duration
    /// RFC 3339.
    case timestamp
    /// One of these names. `foldsCase` also accepts lower case, for the one field that has it.
    case enumeration(Set<String>, foldsCase: Bool = false)
    case stringMap
    /// Any object, passed through unchanged.
    case anyObject
    case list(FCMShape)
    case message(FCMMessageShape)
}

/// The fields of one message type, accepted in snake_case and lowerCamelCase.
struct FCMMessageShape: Sendable {
    /// Maps both spellings to the canonical name and shape.
    let fields: [String: (name: String, shape: FCMShape)]

    init(_ fields: [String: FCMShape]) {
        var both: [String: (name: String, shape: FCMShape)] = [:]
        for (name, shape) in fields {
            both[name] = (name, shape)
            both[Self.camelCase(name)] = (name, shape)
        }
        self.fields = both
    }

    private static func camelCase(_ name: String) -> String {
        let words = name.split(separator: "_")
        return words.dropFirst().reduce(String(words[0])) { $0 + $1.prefix(1).uppercased() + $1.dropFirst() }
    }
}

/// An invalid field and the reason.
struct FCMViolation: Hashable, Sendable {
    /// A path of canonical names, `message.data[0].value`; empty for the body itself.
    let field: String
    let description: String
}
