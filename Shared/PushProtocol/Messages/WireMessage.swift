package import FoundationEssentials

/// A message on the bus: JSON with `type` and `version` beside its own members.
package protocol WireMessage: Sendable {
    /// The value of the AMQP `type` property and of the member `type`.
    static var messageType: String { get }
    /// The version that this build writes. It reads all versions up to it.
    static var messageVersion: Int { get }
    var trace: Trace { get }
    /// The content whose nesting an upstream service controls. `nil` for messages of a fixed form, and for contents
    /// decoded from the bus, which were checked there.
    var nestedContent: Content? { get }
    /// The notifications that the message is about, for log lines.
    var notificationIDs: [UUID] { get }

    /// Decodes a message. Throws for another type and for a version newer than this build.
    static func decode(wireBody body: [UInt8]) throws(WireError) -> Self
    /// The encoded message: `{"type":…,"version":…,"trace":{…},…}`.
    func wireBody() throws(WireError) -> [UInt8]
}

extension WireMessage {
    package var nestedContent: Content? { nil }
    package var notificationIDs: [UUID] { [] }

    /// Encodes the message.
    ///
    /// - Throws: `WireError.tooLarge` or `.tooDeep` for a body that the next stage would refuse.
    package func boundedWireBody() throws(WireError) -> [UInt8] {
        if let content = nestedContent, content.depth >= WireCoding.maximumDepth {
            throw .tooDeep(limit: WireCoding.maximumDepth)
        }
        let body = try wireBody()
        guard body.count <= WireCoding.maximumBodySize else {
            throw .tooLarge(bytes: body.count, limit: WireCoding.maximumBodySize)
        }
        return body
    }

    /// Throws for another type and for a version newer than this build.
    fileprivate static func check(type: String, version: Int) throws(WireError) {
        guard type == messageType else { throw .invalid(path: "type", problem: "expected \"\(messageType)\"") }
        guard (1...messageVersion).contains(version) else {
            throw .invalid(path: "version", problem: "this build reads versions 1 to \(messageVersion)")
        }
    }
}

extension WireMessage where Self: Codable {
    package static func decode(wireBody body: [UInt8]) throws(WireError) -> Self { try decodeWithCodable(body) }

    static func decodeWithCodable(_ body: [UInt8]) throws(WireError) -> Self {
        try WireCoding.decode(Wire<Self>.self, from: body).message
    }

    package func wireBody() throws(WireError) -> [UInt8] {
        try WireCoding.encode(Wire(type: Self.messageType, version: Self.messageVersion, message: self))
    }
}

/// The members `type` and `version`, flat beside the message's own.
private struct Wire<Message: WireMessage & Codable>: Codable {
    let type: String
    let version: Int
    let message: Message

    private enum CodingKeys: String, CodingKey { case type, version }

    init(type: String, version: Int, message: Message) {
        self.type = type
        self.version = version
        self.message = message
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        type = try container.decode(String.self, forKey: .type)
        version = try container.decode(Int.self, forKey: .version)
        try Message.check(type: type, version: version)
        message = try Message(from: decoder)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(type, forKey: .type)
        try container.encode(version, forKey: .version)
        try message.encode(to: encoder)
    }
}

/// A message with a reader of its own, for the hot path. Our writers produce the canonical form that it reads
/// (``SortedObjectReader``).
package protocol CanonicalMessage: WireMessage {
    /// Reads a message in canonical form from `body`.
    init(_ reader: inout JSONReader, of body: [UInt8]) throws(JSONReader.Unreadable)
}

extension CanonicalMessage {
    package static func decode(wireBody body: [UInt8]) throws(WireError) -> Self {
        guard body.count <= WireCoding.maximumBodySize else {
            throw .tooLarge(bytes: body.count, limit: WireCoding.maximumBodySize)
        }
        if let message = JSONReader.read(
            body, { (reader) throws(JSONReader.Unreadable) in try Self(&reader, of: body) })
        {
            return message
        }
        return try decodeAnyForm(body)
    }

    /// Brings any other JSON into canonical form, then reads it. Also finds the fault of an invalid body.
    @inline(never)
    private static func decodeAnyForm(_ body: [UInt8]) throws(WireError) -> Self {
        let value = try WireCoding.decode(JSONValue.self, from: body)
        let members = try JSONObjectReader(value, at: "the body", prefix: "", known: nil)
        try check(type: try members.text("type"), version: Int(try members.required("version").int ?? 0))
        var writer = ByteWriter(capacity: body.count)
        writer.value(value)
        let canonical = writer.bytes
        return try canonical.withUnsafeBufferPointer { (bytes) throws(WireError) in
            var reader = JSONReader(bytes)
            do throws(JSONReader.Unreadable) {
                return try Self(&reader, of: canonical)
            } catch {
                throw WireError(error, at: reader.position, in: bytes)
            }
        }
    }
}
