import PushProtocol

/// Reads the events of one request. An event is accepted only if rules can read it.
struct EventReader: Hashable, Sendable {
    static let maximumBatch = 10_000

    let app: AppID
    var key: IdempotencyKey?
    /// The request's W3C `traceparent`.
    var traceparent: String?
    /// Whether the caller may publish requests for notifications (``ReservedType/notificationRequest``).
    var mayRequestNotifications = false
    /// The other types that the caller may publish; nil for every type.
    var types: AllowedTypes?

    /// Reads a structured event.
    ///
    /// - Parameter occurrence: the number of equal events before it in a batch.
    func structured(_ body: [UInt8], occurrence: Int = 0) throws(EventRefusal) -> IncomingEvent {
        let (body, event) = try decoded(body, occurrence: occurrence)
        if event.type.hasPrefix(ReservedType.prefix) {
            guard event.type == ReservedType.notificationRequest else {
                throw .invalid("type is invalid: types that begin with “\(ReservedType.prefix)” are reserved")
            }
            guard mayRequestNotifications else {
                throw EventRefusal(
                    status: 403,
                    message: "the caller may not do notifications:send, which events of this type need")
            }
            do { try ProviderCheck.check(try DirectNotification(event.data), of: app) } catch {
                throw EventRefusal(error)
            }
        } else if types?.contains(event.type) == false {
            throw EventRefusal(
                status: 403, message: "the bearer token does not allow events of this type; see its event_types")
        }
        guard IncomingEvent.routingKey(of: event).utf8.count <= WireCoding.maximumShortString else {
            throw .invalid(
                "type is too long: the app's id, a dot and the type may have \(WireCoding.maximumShortString) bytes")
        }
        let added = event.traceparent == nil ? traceparent.flatMap(Self.validTraceparent) : nil
        return IncomingEvent(event: event, body: body, traceparent: added)
    }

    /// Reads an event in binary mode: the headers hold its attributes, and the body its data.
    func binary(_ headers: [(name: String, value: String)], body: [UInt8]) throws(EventRefusal) -> IncomingEvent {
        let attributes = try BinaryAttributes(headers)
        guard body.count <= WireCoding.maximumBodySize else { throw Self.tooLarge(body.count) }
        if !body.isEmpty {
            // One complete value: a body such as `1,"type":"x"` must not become attributes.
            do { _ = try WireCoding.decode(JSONValue.self, from: body) } catch { throw EventRefusal(error) }
        }
        return try structured(attributes.structuredBody(with: body))
    }

    /// Reads a batch: a JSON array of structured events. Each element has its own result.
    func batch(_ body: [UInt8]) throws(EventRefusal) -> [Result<IncomingEvent, EventRefusal>] {
        var occurrences: [[UInt8]: Int] = [:]
        return try JSONArraySplitter.elements(of: body, maximum: Self.maximumBatch).map { element in
            let element = Array(element)
            let occurrence = key == nil ? 0 : occurrences[element, default: 0]
            if key != nil { occurrences[element] = occurrence + 1 }
            do throws(EventRefusal) {
                return .success(try structured(element, occurrence: occurrence))
            } catch {
                return .failure(error)
            }
        }
    }

    /// Decodes an event as rules do. Adds the id derived from the request's key to an event without one.
    private func decoded(
        _ body: [UInt8], occurrence: Int
    ) throws(EventRefusal) -> (body: [UInt8], event: DomainEvent) {
        guard body.count <= WireCoding.maximumBodySize else { throw Self.tooLarge(body.count) }
        do throws(WireError) {
            var body = body
            if let key, case .object(var members) = try WireCoding.decode(JSONValue.self, from: body),
                members["id"] == nil || members["id"] == .null
            {
                members["id"] = nil
                let content = try WireCoding.encode(JSONValue.object(members))
                members["id"] = .string(key.eventID(app: app, content: content, occurrence: occurrence))
                body = try WireCoding.encode(JSONValue.object(members))
            }
            // Only the first word of the routing key matters here.
            let event = try CloudEvents.decode(
                routingKey: app.rawValue, contentType: CloudEvents.structuredContentType, headers: [:], body: body)
            return (body, event)
        } catch {
            if key == nil, error == .missing(path: "id") {
                throw .invalid("id is missing; send an id, or the header Idempotency-Key to derive it from")
            }
            throw EventRefusal(error)
        }
    }

    private static func tooLarge(_ bytes: Int) -> EventRefusal {
        EventRefusal(.tooLarge(bytes: bytes, limit: WireCoding.maximumBodySize))
    }

    /// Returns a `traceparent` (W3C Trace Context §3.2.2); nil for any other text, which the specification requires to
    /// ignore.
    private static func validTraceparent(_ text: String) -> String? {
        let isValid = text.wholeMatch(of: /[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}/) != nil
        return isValid ? text : nil
    }
}
