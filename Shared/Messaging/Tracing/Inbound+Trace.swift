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

    /// The trace id of a `traceparent`: its second part. `nil` for a text of another form.
    static func traceID(_ traceparent: String) -> String? {
        let parts = traceparent.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, parts[1].utf8.count == 32,
            parts[1].utf8.allSatisfy({ ($0 &- 0x30) < 10 || (0x61...0x66).contains($0) })
        else { return nil }
        return String(parts[1])
    }
}
