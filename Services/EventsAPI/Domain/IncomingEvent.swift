import PushProtocol

/// An event that arrived over HTTP, and that rules can read.
struct IncomingEvent: Hashable, Sendable {
    let event: DomainEvent
    /// The structured CloudEvent to publish.
    let body: [UInt8]
    /// The request's `traceparent`, for an event without its own.
    let traceparent: String?

    /// `<app>.<event type>`.
    var routingKey: String { Self.routingKey(of: event) }

    static func routingKey(of event: DomainEvent) -> String { "\(event.app.rawValue).\(event.type)" }
}

/// The types that publishers may not use, because this project defines them.
enum ReservedType {
    static let prefix = "heliograph."
    /// A notification that the publisher words. It needs the operation `send-notifications`.
    static let notificationRequest = DirectNotification.eventType
}
