import FoundationEssentials

/// Decodes CloudEvents 1.0 over AMQP 0-9-1.
///
/// Structured mode is JSON (`application/cloudevents+json`). In binary mode the attributes are AMQP headers prefixed
/// `cloudEvents_` or `cloudEvents:`, and the body is the data.
package enum CloudEvents {
    /// The maximum length of an attribute, in UTF-8 bytes.
    package static let maximumAttributeLength = 1024
    /// The maximum length of `id` and `type`, which become AMQP short strings.
    package static let maximumNameLength = WireCoding.maximumShortString
    /// The maximum nesting of an event's data. Leaves eight levels for the contents, notifications, digests and
    /// pushes that wrap the data.
    package static let maximumDataDepth = WireCoding.maximumDepth - 8
    package static let structuredContentType = "application/cloudevents+json"

    /// Decodes an event from a delivery.
    ///
    /// - Parameters:
    ///   - headers: the AMQP headers with string values.
    ///   - contentType: the AMQP content type, which selects the mode. Without it, the mode is structured unless
    ///     binary attributes are present.
    package static func decode(
        routingKey: String, contentType: String?, headers: [String: String], body: [UInt8]
    ) throws(WireError) -> DomainEvent {
        guard let app = AppID(routingKey: routingKey) else {
            throw .invalid(
                path: "routing key", problem: "its first word must be an app id; publish as <app>.<event type>")
        }
        let attributes = binaryAttributes(in: headers)
        if contentType?.lowercased().hasPrefix(structuredContentType) == true || attributes["specversion"] == nil {
            return try structured(app: app, headers: headers, body: body)
        }
        let data: JSONValue = body.isEmpty ? .object([:]) : try WireCoding.decode(JSONValue.self, from: body)
        return try event(app: app, data: data, headers: headers) { name in attributes[name].map(JSONValue.string) }
    }

    /// The id of an event that cannot be decoded; `nil` if the id cannot be read either. For log lines.
    package static func id(headers: [String: String], body: [UInt8]) -> String? {
        if let id = binaryAttributes(in: headers)["id"] { return id }
        guard case .object(let members)? = try? WireCoding.decode(JSONValue.self, from: body),
            case .string(let id)? = members["id"]
        else { return nil }
        return id
    }

    private static func structured(app: AppID, headers: [String: String], body: [UInt8]) throws(WireError)
        -> DomainEvent
    {
        guard case .object(let members) = try WireCoding.decode(JSONValue.self, from: body) else {
            throw .invalid(path: "the body", problem: "expected a CloudEvents object")
        }
        guard members["data_base64"] == nil else {
            throw .invalid(path: "data_base64", problem: "only JSON data is accepted, in the member data")
        }
        return try event(app: app, data: members["data"] ?? .object([:]), headers: headers) { members[$0] }
    }

    /// Whether a text can be the `id` of an accepted event.
    package static func isID(_ text: String) -> Bool {
        (1...maximumNameLength).contains(text.utf8.count) && text.hasNoControls
    }

    private static func event(
        app: AppID, data: JSONValue, headers: [String: String], attribute: (String) -> JSONValue?
    ) throws(WireError) -> DomainEvent {
        guard data.depth <= maximumDataDepth else { throw .tooDeep(limit: maximumDataDepth) }
        func text(_ name: String, limit: Int = maximumAttributeLength) throws(WireError) -> String? {
            switch attribute(name) {
            case nil, .null: return nil
            case .string(let value):
                guard !value.isEmpty else { throw .invalid(path: name, problem: "it is empty") }
                guard value.utf8.count <= limit else {
                    throw .invalid(path: name, problem: "it is longer than \(limit) bytes")
                }
                guard value.hasNoControls else {
                    throw .invalid(path: name, problem: "it holds a control character")
                }
                return value
            default: throw .invalid(path: name, problem: "expected a string")
            }
        }
        func required(_ name: String, limit: Int = maximumAttributeLength) throws(WireError) -> String {
            guard let value = try text(name, limit: limit) else { throw .missing(path: name) }
            return value
        }
        func moment(_ name: String) throws(WireError) -> Date? {
            guard let value = try text(name) else { return nil }
            guard let date = RFC3339.date(from: value) else {
                throw .invalid(path: name, problem: "expected an RFC 3339 time such as 2026-01-01T00:00:00Z")
            }
            return date
        }
        let version = try required("specversion")
        guard version == "1.0" else {
            throw .invalid(path: "specversion", problem: "only CloudEvents 1.0 is accepted")
        }
        let traceparent = try text("traceparent")
        return DomainEvent(
            app: app, id: try required("id", limit: maximumNameLength), source: try required("source"),
            type: try required("type", limit: maximumNameLength),
            subject: try text("subject"), time: try moment("time"),
            traceparent: headers[HeaderName.traceparent] ?? traceparent, expiresAt: try moment("expirytime"),
            data: data)
    }

    private static func binaryAttributes(in headers: [String: String]) -> [String: String] {
        var attributes: [String: String] = [:]
        for (name, value) in headers {
            for prefix in ["cloudEvents_", "cloudEvents:"] where name.hasPrefix(prefix) {
                attributes[String(name.dropFirst(prefix.count))] = value
            }
        }
        return attributes
    }
}
