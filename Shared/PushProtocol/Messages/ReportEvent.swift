package import FoundationEssentials

/// A report for an upstream service: a CloudEvent in structured mode. Contains neither tokens nor texts.
///
/// Readers ignore members that they do not know.
package struct ReportEvent: Hashable, Sendable {
    package var kind: ReportKind
    /// Equal reports have equal ids.
    package var id: UUID
    /// The service that reports, such as `/heliograph/rules`.
    package var source: String
    package var time: Timestamp
    package var data: JSONValue

    package init(kind: ReportKind, id: UUID, source: String, time: Timestamp, data: JSONValue) {
        self.kind = kind
        self.id = id
        self.source = source
        self.time = time
        self.data = data
    }

    package func body() throws(WireError) -> [UInt8] {
        let event: JSONValue = [
            "specversion": "1.0", "id": .string(id.uuidString.lowercased()), "source": .string(source),
            "type": .string(kind.eventType), "time": .string(RFC3339.string(from: time.date)),
            "datacontenttype": "application/json", "data": data,
        ]
        return try WireCoding.encode(event)
    }

    /// Reads the attributes that identify a report.
    package static func read(_ body: [UInt8]) throws(WireError) -> (kind: ReportKind, id: UUID) {
        let value = try WireCoding.decode(JSONValue.self, from: body)
        guard value["specversion"]?.string == "1.0" else {
            throw .invalid(path: "specversion", problem: "expected a CloudEvent 1.0")
        }
        guard let kind = (value["type"]?.string).flatMap(ReportKind.init(eventType:)) else {
            throw .invalid(path: "type", problem: "is not the type of a report")
        }
        guard let id = (value["id"]?.string).flatMap(UUID.init(uuidString:)) else {
            throw .invalid(path: "id", problem: "expected a UUID")
        }
        return (kind, id)
    }
}
