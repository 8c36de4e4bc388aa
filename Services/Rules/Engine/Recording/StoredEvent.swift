import FoundationEssentials
package import PushProtocol

/// The stored form of an event: until its fan-out is finished, or as part of a recording.
package struct StoredEvent: Codable, Hashable, Sendable {
    private var app: AppID
    private var id: String
    private var source: String
    private var type: String
    private var subject: String?
    private var time: Timestamp?
    private var traceparent: String?
    private var expiresAt: Timestamp?
    private var data: JSONValue

    package init(_ event: DomainEvent) {
        app = event.app
        id = event.id
        source = event.source
        type = event.type
        subject = event.subject
        time = event.time.map(Timestamp.init)
        traceparent = event.traceparent
        expiresAt = event.expiresAt.map(Timestamp.init)
        data = event.data
    }

    package var event: DomainEvent {
        DomainEvent(
            app: app, id: id, source: source, type: type, subject: subject, time: time?.date, traceparent: traceparent,
            expiresAt: expiresAt?.date, data: data)
    }
}
