package import FoundationEssentials

/// A CloudEvents 1.0 event of an upstream service. Exchange `events`, routing key `<app>.<event type>`. The first
/// word determines the app, because the broker restricts each publisher to its app.
package struct DomainEvent: Hashable, Sendable {
    package var app: AppID
    package var id: String
    package var source: String
    package var type: String
    package var subject: String?
    package var time: Date?
    package var traceparent: String?
    /// CloudEvents extension `expirytime`: no notification is sent after it.
    package var expiresAt: Date?
    package var data: JSONValue

    package init(
        app: AppID, id: String, source: String, type: String, subject: String? = nil, time: Date? = nil,
        traceparent: String? = nil, expiresAt: Date? = nil, data: JSONValue = .object([:])
    ) {
        self.app = app
        self.id = id
        self.source = source
        self.type = type
        self.subject = subject
        self.time = time
        self.traceparent = traceparent
        self.expiresAt = expiresAt
        self.data = data
    }
}
