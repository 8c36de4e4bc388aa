package import AMQP
internal import FoundationEssentials
package import Logging
package import PushProtocol

/// The ids in log lines about messages. All modules get them from here, so that one query finds a message in all logs
/// (`deploy/operations/logs.md`).
///
/// | key | value |
/// |---|---|
/// | `correlation` | the event's id, on all messages that it causes; `-` if it is unknown |
/// | `message_id` | the message's own id; `-` without one |
/// | `causation` | the id of the message that caused it |
/// | `trace_id` | of W3C Trace Context |
/// | `notifications` | the first ``maximumNotifications`` notifications of the message |
/// | `queue`, `attempt` | of a received message |
/// | `exchange`, `routing_key` | of a published message |
///
/// Computing them takes microseconds. Pass them to the logger as an argument, which it evaluates only for a line that is
/// logged.
enum LogMetadata {
    /// A line has at most 4 KiB.
    static let maximumNotifications = 10

    static let unknown: Logger.MetadataValue = "-"

    static func notifications(_ ids: [UUID]) -> Logger.MetadataValue {
        .array(ids.prefix(maximumNotifications).map { .string(Hexadecimal.text(of: $0)) })
    }

    /// The trace id of a `traceparent`; `nil` for an invalid one.
    static func traceID(_ traceparent: String) -> Logger.MetadataValue? {
        TraceParent(traceparent).map { .string($0.trace.text) }
    }
}

extension WireMessage {
    /// The metadata of a log line about this message.
    package var logMetadata: Logger.Metadata {
        var metadata: Logger.Metadata = [
            LogKey.messageID: .string(Hexadecimal.text(of: trace.id)), LogKey.correlation: .string(trace.correlation),
            LogKey.causation: .string(trace.causation),
        ]
        metadata[LogKey.traceID] = trace.traceparent.flatMap(LogMetadata.traceID)
        let ids = notificationIDs
        if !ids.isEmpty { metadata[LogKey.notifications] = LogMetadata.notifications(ids) }
        return metadata
    }
}

extension DomainEvent {
    /// The metadata of a log line about this event.
    package var logMetadata: Logger.Metadata {
        var metadata: Logger.Metadata = [LogKey.correlation: .string(id)]
        metadata[LogKey.traceID] = traceparent.flatMap(LogMetadata.traceID)
        return metadata
    }
}

extension Inbound {
    /// The metadata of a log line about a message that is not decoded.
    package var logMetadata: Logger.Metadata {
        var metadata = delivery.logMetadata
        metadata[LogKey.queue] = .string(queue.name)
        metadata[LogKey.attempt] = "\(attempt)"
        if delivery.properties.correlationID == nil, queue.hasEvents,
            let id = CloudEvents.id(headers: headers, body: body)
        {
            metadata[LogKey.correlation] = .string(id)
        }
        return metadata
    }
}

extension Delivery {
    /// The metadata of a log line about this message.
    package var logMetadata: Logger.Metadata {
        var metadata = inbound.logMetadata
        if let message = message as? any WireMessage {
            metadata.merge(message.logMetadata) { $1 }
        } else if let event = message as? DomainEvent {
            metadata.merge(event.logMetadata) { $1 }
        }
        // That of the span, or without tracing the received one, before that of the body.
        if let trace = traceparent.flatMap(LogMetadata.traceID) { metadata[LogKey.traceID] = trace }
        return metadata
    }
}

extension AMQPDelivery {
    /// The metadata of a log line about a message outside a stage.
    package var logMetadata: Logger.Metadata { LogMetadata.ids(in: properties) }
}

extension AMQPMessage {
    /// The metadata of a log line about a message to be published.
    package var logMetadata: Logger.Metadata {
        var metadata = LogMetadata.ids(in: properties)
        metadata[LogKey.exchange] = .string(exchange)
        metadata[LogKey.routingKey] = .string(routingKey)
        return metadata
    }
}

extension LogMetadata {
    fileprivate static func ids(in properties: AMQPProperties) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            LogKey.messageID: properties.messageID.map(Logger.MetadataValue.string) ?? unknown,
            LogKey.correlation: properties.correlationID.map(Logger.MetadataValue.string) ?? unknown,
        ]
        metadata[LogKey.traceID] = properties.headers[HeaderName.traceparent]?.text.flatMap(traceID)
        return metadata
    }
}
