/// The used properties of the AMQP 0-9-1 `basic` class, with RabbitMQ's meaning.
///
/// Stored as one reference, because the properties of a delivery are passed on often and rarely read.
package struct AMQPProperties: Hashable, Sendable {
    private struct Fields: Hashable, Sendable {
        var contentType: String?
        var contentEncoding: String?
        var messageID: String?
        var correlationID: String?
        var type: String?
        var appID: String?
        var expiration: String?
        var userID: String?
        var persistent: Bool
        var timestamp: Int64?
        var headers: [String: AMQPValue]
    }

    private final class Box: Sendable {
        let fields: Fields
        let receivedBytes: Int

        init(_ fields: Fields, receivedBytes: Int = 0) {
            self.fields = fields
            self.receivedBytes = receivedBytes
        }
    }

    private var box: Box

    package init(
        contentType: String? = nil, contentEncoding: String? = nil, messageID: String? = nil,
        correlationID: String? = nil, type: String? = nil, appID: String? = nil, expiration: String? = nil,
        userID: String? = nil, persistent: Bool = true, timestamp: Int64? = nil, headers: [String: AMQPValue] = [:],
        receivedBytes: Int = 0
    ) {
        box = Box(
            Fields(
                contentType: contentType, contentEncoding: contentEncoding, messageID: messageID,
                correlationID: correlationID, type: type, appID: appID, expiration: expiration, userID: userID,
                persistent: persistent, timestamp: timestamp, headers: headers),
            receivedBytes: receivedBytes)
    }

    /// The size of the received header frame in bytes; 0 for properties made by this process. Not part of equality.
    package var receivedBytes: Int { box.receivedBytes }

    package static func == (a: AMQPProperties, b: AMQPProperties) -> Bool {
        a.box === b.box || a.box.fields == b.box.fields
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(box.fields) }

    private mutating func change(_ change: (inout Fields) -> Void) {
        var fields = box.fields
        change(&fields)
        box = Box(fields)
    }
}

extension AMQPProperties {
    package var contentType: String? { box.fields.contentType }
    package var contentEncoding: String? { box.fields.contentEncoding }
    package var correlationID: String? { box.fields.correlationID }
    package var type: String? { box.fields.type }
    package var appID: String? { box.fields.appID }

    package var messageID: String? {
        get { box.fields.messageID }
        set { change { $0.messageID = newValue } }
    }

    /// The message TTL in milliseconds, as text.
    package var expiration: String? {
        get { box.fields.expiration }
        set { change { $0.expiration = newValue } }
    }

    /// RabbitMQ refuses a message whose `user-id` differs from the connection's user (RabbitMQ: Validated User-ID).
    package var userID: String? {
        get { box.fields.userID }
        set { change { $0.userID = newValue } }
    }

    /// Delivery mode 2: written to disk. The default.
    package var persistent: Bool {
        get { box.fields.persistent }
        set { change { $0.persistent = newValue } }
    }

    /// Seconds since 1970.
    package var timestamp: Int64? {
        get { box.fields.timestamp }
        set { change { $0.timestamp = newValue } }
    }

    package var headers: [String: AMQPValue] {
        get { box.fields.headers }
        set { change { $0.headers = newValue } }
    }
}
