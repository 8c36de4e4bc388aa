import FoundationEssentials
import Messaging
import PushProtocol

extension DomainEvent {
    /// The messages that carry copies of the event to apps that borrow it. A repeat has the same ids.
    ///
    /// - Throws: `WireError.tooLarge` or `.tooDeep`.
    func copies(for borrowers: [AppID], arrivedAt: Timestamp) throws(WireError) -> [Outbound] {
        guard !borrowers.isEmpty else { return [] }
        let body = try WireCoding.encode(structured)
        return borrowers.map { app in
            let copy = DerivedID.uuid5(DerivedID.namespace, ["event-copy", source, id, "\(self.app)/\(app)"])
            return Outbound(
                exchange: .events, routingKey: "\(app).\(type)", messageID: Hexadecimal.text(of: copy), type: type,
                correlationID: id, traceparent: traceparent, arrivedAt: arrivedAt, body: body)
        }
    }

    /// The event as a structured CloudEvent, with the attributes that rules use.
    private var structured: JSONValue {
        var members: [String: JSONValue] = [
            "specversion": "1.0", "id": .string(id), "source": .string(source), "type": .string(type), "data": data,
        ]
        members["subject"] = subject.map(JSONValue.string)
        members["time"] = time.map { .string(RFC3339.string(from: $0)) }
        members["expirytime"] = expiresAt.map { .string(RFC3339.string(from: $0)) }
        return .object(members)
    }
}
