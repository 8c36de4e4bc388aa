package import FoundationEssentials

/// Where a message comes from. Every message of ours carries these members, so that one event can be followed through
/// every stage and every retry.
package struct Trace: Codable, Hashable, Sendable {
    /// This message's own id: derived, so a redelivery of its cause makes the same one.
    package var id: UUID
    /// The id of the domain event that began it all (CloudEvents `id`).
    package var correlation: String
    /// The id of the message that this one was made from.
    package var causation: String
    /// W3C Trace Context, text form; absent when upstream sent none.
    package var traceparent: String?

    package init(id: UUID, correlation: String, causation: String, traceparent: String? = nil) {
        self.id = id
        self.correlation = correlation
        self.causation = causation
        self.traceparent = traceparent
    }

    /// Refuses a correlation that the next message could not carry as its AMQP correlation id.
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

    /// The trace of a message that a stage makes out of the one that carries this trace.
    package func next(id: UUID) -> Trace {
        Trace(id: id, correlation: correlation, causation: Hexadecimal.text(of: self.id), traceparent: traceparent)
    }
}

/// A message of ours on the bus: JSON with `type` and `version` beside its own members.
package protocol WireMessage: Codable, Sendable {
    /// The value of the AMQP `type` property and of the member `type`.
    static var messageType: String { get }
    /// The version this build writes. It reads every version up to it.
    static var messageVersion: Int { get }
    var trace: Trace { get }
    /// The content whose nesting the sender of an event decides; `nil` for messages of a fixed form, and for a content
    /// that was read from the bus at the same level.
    var nestedContent: Content? { get }

    /// Reads a body without the general decoder, to the same value; `nil` leaves it to that one. For the messages that
    /// every notification costs.
    static func read(_ body: [UInt8]) -> Self?
    /// The bytes that the general encoder would make, without it; `nil` leaves it to that one.
    func written() -> [UInt8]?
}

extension WireMessage {
    package static func read(_ body: [UInt8]) -> Self? { nil }
    package var nestedContent: Content? { nil }
    package func written() -> [UInt8]? { nil }

    /// The bytes that go onto the bus: `{"type":…,"version":…,"trace":{…},…}`.
    package func wireBody() throws(WireError) -> [UInt8] {
        if let body = written() { return body }
        return try WireCoding.encode(Wire(type: Self.messageType, version: Self.messageVersion, message: self))
    }

    /// Reads a message, refusing bodies that are something else or newer than this build.
    package static func decode(wireBody body: [UInt8]) throws(WireError) -> Self {
        if body.count <= WireCoding.maximumBodySize, let message = read(body) { return message }
        return try decodeGenerally(wireBody: body)
    }

    /// The same by the general decoder, which words the errors.
    static func decodeGenerally(wireBody body: [UInt8]) throws(WireError) -> Self {
        try WireCoding.decode(Wire<Self>.self, from: body).message
    }
}

/// The outer members of a message, flat beside its own.
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
