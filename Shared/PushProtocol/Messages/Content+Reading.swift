extension Content {
    /// Decodes a content that ``EncodedContent`` has scanned.
    static func fastDecoded(_ text: UnsafeBufferPointer<UInt8>) -> Content? {
        var reader = JSONReader(text)
        return try? Content(&reader)
    }

    init(_ reader: inout JSONReader) throws(JSONReader.NotCanonical) {
        var content = Content()
        var isSilent: Bool?
        var seen = DuplicateKeyGuard()
        try reader.object { (reader, key) throws(JSONReader.NotCanonical) in
            switch key {
            case "title": try seen.mark(0); content.title = try reader.optionalString()
            case "subtitle": try seen.mark(1); content.subtitle = try reader.optionalString()
            case "body": try seen.mark(2); content.body = try reader.optionalString()
            case "badge": try seen.mark(3); content.badge = try reader.optionalInteger()
            case "sound": try seen.mark(4); content.sound = try reader.optionalString()
            case "category": try seen.mark(5); content.category = try reader.optionalString()
            case "thread": try seen.mark(6); content.thread = try reader.optionalString()
            case "deepLink": try seen.mark(7); content.deepLink = try reader.optionalString()
            case "image": try seen.mark(8); content.image = try reader.optionalString()
            case "data": try seen.mark(9); content.data = try reader.members()
            case "silent": try seen.mark(10); isSilent = try reader.bool()
            case "interruptionLevel":
                try seen.mark(11)
                content.interruptionLevel = try reader.optional { (reader) throws(JSONReader.NotCanonical) in
                    try reader.enumValue(InterruptionLevel.self)
                }
            case "collapseKey": try seen.mark(12); content.collapseKey = try reader.optionalString()
            case "apns":
                try seen.mark(13)
                content.apns = try reader.optional { (reader) throws(JSONReader.NotCanonical) in
                    try APNsOverride(&reader)
                }
            case "fcm":
                try seen.mark(14)
                content.fcm = try reader.optional { (reader) throws(JSONReader.NotCanonical) in try FCMOverride(&reader)
                }
            default: try reader.skip(key)
            }
        }
        guard let isSilent else { throw JSONReader.NotCanonical() }
        content.silent = isSilent
        self = content
    }
}

extension APNsOverride {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.NotCanonical) {
        var headers: [String: String]?, payload: JSONValue?
        var seen = DuplicateKeyGuard()
        try reader.object { (reader, key) throws(JSONReader.NotCanonical) in
            switch key {
            case "headers":
                try seen.mark(0)
                headers = try reader.members().map { (members) throws(JSONReader.NotCanonical) in
                    var texts: [String: String] = [:]
                    for (name, value) in members {
                        guard let text = value.string else { throw JSONReader.NotCanonical() }
                        texts[name] = text
                    }
                    return texts
                }
            case "payload":
                try seen.mark(1);
                payload = try reader.optional { (reader) throws(JSONReader.NotCanonical) in try reader.value() }
            default: try reader.skip(key)
            }
        }
        self.init(headers: headers, payload: payload)
    }
}

extension FCMOverride {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.NotCanonical) {
        var message: JSONValue?, validateOnly: Bool?
        var seen = DuplicateKeyGuard()
        try reader.object { (reader, key) throws(JSONReader.NotCanonical) in
            switch key {
            case "message":
                try seen.mark(0);
                message = try reader.optional { (reader) throws(JSONReader.NotCanonical) in try reader.value() }
            case "validateOnly":
                try seen.mark(1);
                validateOnly = try reader.optional { (reader) throws(JSONReader.NotCanonical) in try reader.bool() }
            default: try reader.skip(key)
            }
        }
        self.init(message: message, validateOnly: validateOnly)
    }
}

extension JSONReader {
    fileprivate mutating func optionalString() throws(NotCanonical) -> String? {
        try optional { (reader) throws(NotCanonical) in try reader.string() }
    }

    fileprivate mutating func optionalInteger() throws(NotCanonical) -> Int? {
        try optional { (reader) throws(NotCanonical) in Int(try reader.integer()) }
    }

    /// Reads a string that is a raw value of `Value`.
    fileprivate mutating func enumValue<Value: RawRepresentable<String> & CaseIterable>(
        _: Value.Type
    ) throws(NotCanonical) -> Value {
        let text = try unescapedString()
        for value in Value.allCases where text.isText(value.rawValue) { return value }
        throw NotCanonical()
    }

    fileprivate mutating func members() throws(NotCanonical) -> [String: JSONValue]? {
        switch try value() {
        case .object(let members): return members
        case .null: return nil
        case .bool, .int, .double, .string, .array: throw NotCanonical()
        }
    }
}

/// Records the members of an object that were read. Throws for a duplicate, which `JSONDecoder` must handle.
struct DuplicateKeyGuard {
    private var seen: UInt32 = 0

    mutating func mark(_ member: UInt32) throws(JSONReader.NotCanonical) {
        let bit = UInt32(1) << member
        guard seen & bit == 0 else { throw JSONReader.NotCanonical() }
        seen |= bit
    }
}
