extension Content {
    init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        var content = Content()
        if try members.find(#""apns":"#, &reader), try !reader.consumeNull() {
            content.apns = try APNsOverride(&reader)
        }
        if try members.find(#""badge":"#, &reader) { content.badge = try reader.optionalInteger().map(Int.init) }
        if try members.find(#""body":"#, &reader) { content.body = try reader.optionalString() }
        if try members.find(#""category":"#, &reader) { content.category = try reader.optionalString() }
        if try members.find(#""collapseKey":"#, &reader) { content.collapseKey = try reader.optionalString() }
        if try members.find(#""data":"#, &reader) { content.data = try reader.optionalObject() }
        if try members.find(#""deepLink":"#, &reader) { content.deepLink = try reader.optionalString() }
        if try members.find(#""fcm":"#, &reader), try !reader.consumeNull() { content.fcm = try FCMOverride(&reader) }
        if try members.find(#""image":"#, &reader) { content.image = try reader.optionalString() }
        if try members.find(#""interruptionLevel":"#, &reader) {
            content.interruptionLevel = try reader.optionalEnumValue()
        }
        try members.require(#""silent":"#, &reader)
        content.silent = try reader.bool()
        if try members.find(#""sound":"#, &reader) { content.sound = try reader.optionalString() }
        if try members.find(#""subtitle":"#, &reader) { content.subtitle = try reader.optionalString() }
        if try members.find(#""thread":"#, &reader) { content.thread = try reader.optionalString() }
        if try members.find(#""title":"#, &reader) { content.title = try reader.optionalString() }
        if try members.find(#""web":"#, &reader), try !reader.consumeNull() {
            content.web = try WebPushOverride(&reader)
        }
        try members.end(&reader)
        self = content
    }
}

extension APNsOverride {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        var channels: [String: ChannelID]?
        if try members.find(#""channels":"#, &reader), let values = try reader.optionalObject() {
            channels = values.compactMapValues { $0.string.flatMap(ChannelID.init(rawValue:)) }
            guard channels?.count == values.count else { throw JSONReader.Unreadable() }
        }
        var headers: [String: String]?
        if try members.find(#""headers":"#, &reader), let values = try reader.optionalObject() {
            headers = values.compactMapValues(\.string)
            guard headers?.count == values.count else { throw JSONReader.Unreadable() }
        }
        let payload = try members.find(#""payload":"#, &reader) ? try reader.optionalValue() : nil
        try members.end(&reader)
        self.init(headers: headers, payload: payload, channels: channels)
    }
}

extension FCMOverride {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        let message = try members.find(#""message":"#, &reader) ? try reader.optionalValue() : nil
        let validateOnly =
            try members.find(#""validateOnly":"#, &reader)
            ? try reader.optional { (reader) throws(JSONReader.Unreadable) in try reader.bool() } : nil
        try members.end(&reader)
        self.init(message: message, validateOnly: validateOnly)
    }
}

extension WebPushOverride {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unreadable) {
        var members = try SortedObjectReader(&reader)
        let message = try members.find(#""message":"#, &reader) ? try reader.optionalValue() : nil
        let urgency = try members.find(#""urgency":"#, &reader) ? try reader.optionalEnumValue(Urgency.self) : nil
        try members.end(&reader)
        self.init(urgency: urgency, message: message)
    }
}

extension JSONReader {
    fileprivate mutating func optionalValue() throws(Unreadable) -> JSONValue? { try consumeNull() ? nil : try value() }

    fileprivate mutating func optionalObject() throws(Unreadable) -> [String: JSONValue]? {
        switch try value() {
        case .object(let members): return members
        case .null: return nil
        case .bool, .int, .double, .string, .array: throw Unreadable()
        }
    }
}
