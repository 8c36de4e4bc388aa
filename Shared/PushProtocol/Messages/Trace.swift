package import FoundationEssentials

/// The origin of a message. All of this project's messages carry it, so an event can be followed through stages and
/// retries.
package struct Trace: Codable, Hashable, Sendable {
    /// The message's id. Derived, so handling a redelivered cause produces the same id.
    package var id: UUID
    /// The id of the domain event (CloudEvents `id`).
    package var correlation: String
    /// The id of the message from which this one was produced.
    package var causation: String
    /// W3C Trace Context, text form; absent when upstream sent none.
    package var traceparent: String?

    package init(id: UUID, correlation: String, causation: String, traceparent: String? = nil) {
        self.id = id
        self.correlation = correlation
        self.causation = causation
        self.traceparent = traceparent
    }

    /// Throws when the correlation is too long for an AMQP correlation id.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(UUID.self, forKey: .id)
        correlation = try container.decode(String.self, forKey: .correlation)
        guard correlation.utf8.count <= WireCoding.maximumShortString else {
            throw DecodingError.dataCorruptedError(
                forKey: .correlation, in: container,
                debugDescription: "it is longer than \(WireCoding.maximumShortString) bytes")
        }
        causation = try container.decode(String.self, forKey: .causation)
        traceparent = try container.decodeIfPresent(String.self, forKey: .traceparent)
    }

    /// The trace of a message produced from this one.
    package func next(id: UUID) -> Trace {
        Trace(id: id, correlation: correlation, causation: Hexadecimal.text(of: self.id), traceparent: traceparent)
    }
}

/// A message on the bus: JSON with `type` and `version` beside its own members.
package protocol WireMessage: Codable, Sendable {
    /// The value of the AMQP `type` property and of the member `type`.
    static var messageType: String { get }
    /// The version that this build writes. It reads all versions up to it.
    static var messageVersion: Int { get }
    var trace: Trace { get }
    /// The content whose nesting an upstream service controls. `nil` for messages of a fixed form, and for contents
    /// decoded from the bus, which were checked there.
    var nestedContent: Content? { get }

    /// Decodes a body without `JSONDecoder`, to an equal value. Returns `nil` when `JSONDecoder` is needed.
    /// Implemented by messages on the hot path.
    static func fastDecoded(_ body: [UInt8]) -> Self?
    /// Encodes without `JSONEncoder`, to the same bytes. Returns `nil` when `JSONEncoder` is needed.
    func fastEncoded() -> [UInt8]?
}

extension WireMessage {
    package static func fastDecoded(_ body: [UInt8]) -> Self? { nil }
    package var nestedContent: Content? { nil }
    package func fastEncoded() -> [UInt8]? { nil }

    /// The encoded message: `{"type":…,"version":…,"trace":{…},…}`.
    package func wireBody() throws(WireError) -> [UInt8] {
        if let body = fastEncoded() { return body }
        return try WireCoding.encode(Wire(type: Self.messageType, version: Self.messageVersion, message: self))
    }

    /// Decodes a message. Throws for another type and for a version newer than this build.
    package static func decode(wireBody body: [UInt8]) throws(WireError) -> Self {
        if body.count <= WireCoding.maximumBodySize, let message = fastDecoded(body) { return message }
        return try decodeWithCodable(wireBody: body)
    }

    /// Decodes with `JSONDecoder`, which produces the error text.
    static func decodeWithCodable(wireBody body: [UInt8]) throws(WireError) -> Self {
        try WireCoding.decode(Wire<Self>.self, from: body).message
    }
}

/// The members `type` and `version`, flat beside the message's own.
private struct Wire<Message: WireMessage>: Codable {
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
        guard type == Message.messageType else {
            throw DecodingError.dataCorruptedError(
                forKey: .type, in: container, debugDescription: "expected \"\(Message.messageType)\"")
        }
        version = try container.decode(Int.self, forKey: .version)
        guard (1...Message.messageVersion).contains(version) else {
            throw DecodingError.dataCorruptedError(
                forKey: .version, in: container,
                debugDescription: "this build reads versions 1 to \(Message.messageVersion)")
        }
        message = try Message(from: decoder)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(type, forKey: .type)
        try container.encode(version, forKey: .version)
        try message.encode(to: encoder)
    }
}
