import PushProtocol

/// The JSON shape of one field of the FCM v1 API, as Google's JSON-to-protobuf front end reads it.
indirect enum FCMShape: Sendable {
    case string
    case bool
    case integer
    case number
    /// Decimal seconds and `s`, at most nine fraction digits.
    case duration
    /// RFC 3339.
    case timestamp
    /// One of these names; `foldsCase` for the one field that also takes lower case.
    case enumeration(Set<String>, foldsCase: Bool = false)
    case stringMap
    /// Any object, carried verbatim.
    case anyObject
    case list(FCMShape)
    case message(FCMMessageShape)
}

/// The fields of one message type. Each is accepted under its own name and in lowerCamelCase.
struct FCMMessageShape: Sendable {
    /// Both spellings lead to the field's own name and shape.
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

/// One thing wrong with a message: where, and what.
struct FCMViolation: Hashable, Sendable {
    /// A dotted path in the fields' own names, `message.data[0].value`; empty for the body itself.
    let field: String
    let description: String
}
