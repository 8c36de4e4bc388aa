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
