import FoundationEssentials

extension Push {
    /// As every message is read, compiled for this one: it is what each push costs a sender first.
    package static func decode(wireBody body: [UInt8]) throws(WireError) -> Push {
        if body.count <= WireCoding.maximumBodySize, let push = read(body) { return push }
        return try decodeGenerally(wireBody: body)
    }

    /// Reads a push without the general decoder; see ``JSONReader``.
    package static func read(_ body: [UInt8]) -> Self? {
        body.withUnsafeBufferPointer { bytes in
            var reader = JSONReader(bytes)
            do throws(JSONReader.Unusual) {
                let push = try Push(&reader, of: body)
                try reader.end()
                return push
            } catch {
                return nil
            }
        }
    }

    private init(_ reader: inout JSONReader, of body: [UInt8]) throws(JSONReader.Unusual) {
        var isPush = false, version: Int64?, trace: Trace?, app: AppID?, provider: Provider?
        var environment: ProviderEnvironment?, lane: Lane?, content: PushContent?, expiresAt: Timestamp?
        var delivery: DeliveryPolicy?, targets: [Target]?
        var seen = OnceEach()
        try reader.object { (reader, key) throws(JSONReader.Unusual) in
            switch key {
            case "type": try seen.take(0); isPush = "heliograph.push" ~= (try reader.word())
            case "version": try seen.take(1); version = try reader.integer()
            case "trace": try seen.take(2); trace = try Trace(&reader)
            case "app": try seen.take(3); app = AppID(rawValue: try reader.string())
            case "provider": try seen.take(4); provider = try reader.word(Provider.self)
            case "environment": try seen.take(5); environment = try reader.word(ProviderEnvironment.self)
            case "lane": try seen.take(6); lane = try reader.word(Lane.self)
            case "content": try seen.take(7); content = try PushContent(&reader, of: body)
            case "expiresAt":
                try seen.take(8);
                expiresAt = try reader.optional { (reader) throws(JSONReader.Unusual) in try reader.timestamp() }
            case "delivery":
                try seen.take(9)
                delivery = try reader.optional { (reader) throws(JSONReader.Unusual) in
                    try reader.word(DeliveryPolicy.self)
                }
            case "targets":
                try seen.take(10)
                var read: [Target] = []
                try reader.array { (reader) throws(JSONReader.Unusual) in read.append(try Target(&reader)) }
                targets = read
            default: try reader.skip(key)
            }
        }
        guard isPush, let version, (1...Int64(Self.messageVersion)).contains(version), let trace,
            let app, let provider, let environment, let lane, let content, let targets
        else { throw JSONReader.Unusual() }
        self.init(
            trace: trace, app: app, provider: provider, environment: environment, lane: lane, content: content,
            expiresAt: expiresAt, delivery: delivery, targets: targets)
    }
}

extension Push.Target {
    fileprivate init(_ reader: inout JSONReader) throws(JSONReader.Unusual) {
        var device: UUID?, token: DeviceToken?, address: Push.Address?, notification: UUID?, badge: Int?
        var registeredAt: Timestamp?
        var seen = OnceEach()
        try reader.object { (reader, key) throws(JSONReader.Unusual) in
            switch key {
            case "device": try seen.take(0); device = try reader.uuid()
            case "token": try seen.take(1); token = DeviceToken(secret: try reader.string())
            case "address":
                try seen.take(2)
                address = try reader.optional { (reader) throws(JSONReader.Unusual) in
                    try reader.word(Push.Address.self)
                }
            case "notification": try seen.take(3); notification = try reader.uuid()
            case "badge": try seen.take(4); badge = try reader.optionalInteger()
            case "registeredAt": try seen.take(5); registeredAt = try reader.timestamp()
            default: try reader.skip(key)
            }
        }
        guard let device, let token, let notification, let registeredAt else { throw JSONReader.Unusual() }
        self.init(
            device: device, token: token, address: address, notification: notification, badge: badge,
            registeredAt: registeredAt)
    }
}

extension Trace {
    init(_ reader: inout JSONReader) throws(JSONReader.Unusual) {
        var id: UUID?, correlation: String?, causation: String?, traceparent: String?
        var seen = OnceEach()
        try reader.object { (reader, key) throws(JSONReader.Unusual) in
            switch key {
            case "id": try seen.take(0); id = try reader.uuid()
            case "correlation": try seen.take(1); correlation = try reader.string()
            case "causation": try seen.take(2); causation = try reader.string()
            case "traceparent": try seen.take(3); traceparent = try reader.optionalString()
            default: try reader.skip(key)
            }
        }
        guard let id, let correlation, let causation, correlation.utf8.count <= WireCoding.maximumShortString else {
            throw JSONReader.Unusual()
        }
        self.init(id: id, correlation: correlation, causation: causation, traceparent: traceparent)
    }
}

extension PushContent {
    /// Leaves a content as it is where it can be; reads it where something about it is unusual.
    fileprivate init(_ reader: inout JSONReader, of body: [UInt8]) throws(JSONReader.Unusual) {
        var scan = reader.scan()
        do throws(JSONReader.Unusual) {
            self = .text(try ContentText(&scan, in: body))
            reader.passed(to: scan)
        } catch {
            self.init(try Content(&reader))
        }
    }
}

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

    fileprivate mutating func timestamp() throws(Unusual) -> Timestamp { Timestamp(milliseconds: try integer()) }

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
