extension Content {
    /// Reads a content that ``ContentText`` has passed over.
    static func read(_ text: UnsafeBufferPointer<UInt8>) -> Content? {
        var reader = JSONReader(text)
        return try? Content(&reader)
    }

    init(_ reader: inout JSONReader) throws(JSONReader.Unusual) {
        var content = Content()
        var isSilent: Bool?
        var seen = OnceEach()
        try reader.object { (reader, key) throws(JSONReader.Unusual) in
            switch key {
            case "title": try seen.take(0); content.title = try reader.optionalString()
            case "subtitle": try seen.take(1); content.subtitle = try reader.optionalString()
            case "body": try seen.take(2); content.body = try reader.optionalString()
            case "badge": try seen.take(3); content.badge = try reader.optionalInteger()
            case "sound": try seen.take(4); content.sound = try reader.optionalString()
            case "category": try seen.take(5); content.category = try reader.optionalString()
            case "thread": try seen.take(6); content.thread = try reader.optionalString()
            case "deepLink": try seen.take(7); content.deepLink = try reader.optionalString()
            case "image": try seen.take(8); content.image = try reader.optionalString()
            case "data": try seen.take(9); content.data = try reader.members()
            case "silent": try seen.take(10); isSilent = try reader.bool()
            case "interruptionLevel":
                try seen.take(11)
                content.interruptionLevel = try reader.optional { (reader) throws(JSONReader.Unusual) in
                    try reader.word(InterruptionLevel.self)
                }
            case "collapseKey": try seen.take(12); content.collapseKey = try reader.optionalString()
            case "apns":
                try seen.take(13)
                content.apns = try reader.optional { (reader) throws(JSONReader.Unusual) in try APNsOverride(&reader) }
            case "fcm":
                try seen.take(14)
                content.fcm = try reader.optional { (reader) throws(JSONReader.Unusual) in try FCMOverride(&reader) }
            default: try reader.skip(key)
            }
        }
        guard let isSilent else { throw JSONReader.Unusual() }
        content.silent = isSilent
        self = content
    }
}

extension APNsOverride {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unusual) {
        var headers: [String: String]?, payload: JSONValue?
        var seen = OnceEach()
        try reader.object { (reader, key) throws(JSONReader.Unusual) in
            switch key {
            case "headers":
                try seen.take(0)
                headers = try reader.members().map { (members) throws(JSONReader.Unusual) in
                    var texts: [String: String] = [:]
                    for (name, value) in members {
                        guard let text = value.string else { throw JSONReader.Unusual() }
                        texts[name] = text
                    }
                    return texts
                }
            case "payload":
                try seen.take(1);
                payload = try reader.optional { (reader) throws(JSONReader.Unusual) in try reader.value() }
            default: try reader.skip(key)
            }
        }
        self.init(headers: headers, payload: payload)
    }
}

extension FCMOverride {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unusual) {
        var message: JSONValue?, validateOnly: Bool?
        var seen = OnceEach()
        try reader.object { (reader, key) throws(JSONReader.Unusual) in
            switch key {
            case "message":
                try seen.take(0);
                message = try reader.optional { (reader) throws(JSONReader.Unusual) in try reader.value() }
            case "validateOnly":
                try seen.take(1);
                validateOnly = try reader.optional { (reader) throws(JSONReader.Unusual) in try reader.bool() }
            default: try reader.skip(key)
            }
        }
        self.init(message: message, validateOnly: validateOnly)
    }
}

extension JSONReader {
    fileprivate mutating func optionalString() throws(Unusual) -> String? {
        try optional { (reader) throws(Unusual) in try reader.string() }
    }

    fileprivate mutating func optionalInteger() throws(Unusual) -> Int? {
        try optional { (reader) throws(Unusual) in Int(try reader.integer()) }
    }

    /// One of the words that `Word` has.
    fileprivate mutating func word<Word: RawRepresentable<String> & CaseIterable>(
        _: Word.Type
    ) throws(Unusual) -> Word {
        let text = try word()
        for word in Word.allCases where text.isText(word.rawValue) { return word }
        throw Unusual()
    }

    fileprivate mutating func members() throws(Unusual) -> [String: JSONValue]? {
        switch try value() {
        case .object(let members): return members
        case .null: return nil
        case .bool, .int, .double, .string, .array: throw Unusual()
        }
    }
}

/// Which members of an object were read: which of two with the same name counts is the general decoder's to say.
struct OnceEach {
    private var seen: UInt32 = 0

    mutating func take(_ member: UInt32) throws(JSONReader.Unusual) {
        let bit = UInt32(1) << member
        guard seen & bit == 0 else { throw JSONReader.Unusual() }
        seen |= bit
    }
}
