extension DomainEvent {
    /// The event as a structured CloudEvent, with the attributes that rules use.
    package var cloudEvent: JSONValue {
        var members: [String: JSONValue] = [
            "specversion": "1.0", "id": .string(id), "source": .string(source), "type": .string(type), "data": data,
        ]
        members["subject"] = subject.map(JSONValue.string)
        members["time"] = time.map { .string(RFC3339.string(from: $0)) }
        members["expirytime"] = expiresAt.map { .string(RFC3339.string(from: $0)) }
        members["traceparent"] = traceparent.map(JSONValue.string)
        return .object(members)
    }

    /// Reads an event that ``cloudEvent`` has written.
    ///
    /// - Throws: as ``CloudEvents/decode(routingKey:contentType:headers:body:)``.
    package init(cloudEvent: JSONValue, of app: AppID) throws(WireError) {
        self = try CloudEvents.decode(
            routingKey: "\(app).event", contentType: CloudEvents.structuredContentType, headers: [:],
            body: try WireCoding.encode(cloudEvent))
    }
}
