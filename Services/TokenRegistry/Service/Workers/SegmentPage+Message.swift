import Messaging
import PushProtocol

extension SegmentPage {
    /// The page as a message to rules. A repeated step has the same ids.
    ///
    /// - Throws: `WireError.tooLarge` or `.tooDeep`.
    func message() throws(WireError) -> Outbound {
        let id = DerivedID.uuid5(DerivedID.namespace, ["segment-page", source])
        return Outbound(
            exchange: .events, routingKey: "\(event.app).\(Self.eventType)", messageID: Hexadecimal.text(of: id),
            type: Self.eventType, correlationID: event.id, traceparent: event.traceparent,
            body: try WireCoding.encode(domainEvent.cloudEvent))
    }
}
