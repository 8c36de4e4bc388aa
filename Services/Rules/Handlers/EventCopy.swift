import FoundationEssentials
import Messaging
import PushProtocol

extension DomainEvent {
    /// The messages that carry copies of the event to apps that borrow it. A repeat has the same ids.
    ///
    /// - Throws: `WireError.tooLarge` or `.tooDeep`.
    func copies(for borrowers: [AppID], arrivedAt: Timestamp) throws(WireError) -> [Outbound] {
        guard !borrowers.isEmpty else { return [] }
        let body = try WireCoding.encode(cloudEvent)
        return borrowers.map { app in
            let copy = DerivedID.uuid5(DerivedID.namespace, ["event-copy", source, id, "\(self.app)/\(app)"])
            return Outbound(
                exchange: .events, routingKey: "\(app).\(type)", messageID: Hexadecimal.text(of: copy), type: type,
                correlationID: id, traceparent: traceparent, arrivedAt: arrivedAt, body: body)
        }
    }
}
