internal import AMQP
package import Logging
internal import PushProtocol

extension Inbound {
    /// The log metadata that leads to the message's event and trace.
    package var traceMetadata: Logger.Metadata {
        var metadata: Logger.Metadata = [:]
        if let correlation = delivery.properties.correlationID { metadata[LogKey.correlation] = "\(correlation)" }
        if let trace = traceparent.flatMap(Self.traceID) { metadata[LogKey.traceID] = "\(trace)" }
        return metadata
    }

    /// The trace id of a `traceparent`; `nil` for an invalid one.
    static func traceID(_ traceparent: String) -> String? { TraceParent(traceparent)?.trace.text }
}
