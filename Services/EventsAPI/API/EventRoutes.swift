import DecisionLog
import HTTPAuth
import HTTPTypes
import Hummingbird
import Metrics
import PushProtocol

extension HTTPField.Name {
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
    static let traceparent = HTTPField.Name("traceparent")!
    static let app = HTTPField.Name("Heliograph-App")!
}

/// `POST /v1/events`: accepts CloudEvents in the structured, binary and batch mode.
struct EventRoutes: Sendable {
    let callers: PublisherAuthenticator
    let delivery: EventDelivery
    let budget: ByteBudget
    /// The maximum body of a batch, in bytes.
    let batchLimit: Int

    func add(to router: Router<BasicRequestContext>) {
        router.post("v1/events") { request, context in
            await Response.answeringPublisher(context) {
                let caller = try await callers.publisher(request, to: .publishEvents)
                return try await answer(request, from: caller)
            }
        }
    }

    private func answer(_ request: Request, from caller: Publisher) async throws -> Response {
        let wait = try request.wait
        let headers = request.headers.map { (name: $0.name.rawName, value: $0.value) }
        let mode = try ContentMode(
            contentType: request.headers[.contentType],
            hasAttributes: headers.contains { $0.name.lowercased().hasPrefix(BinaryAttributes.headerPrefix) })
        let reader = EventReader(
            app: caller.app, key: try request.idempotencyKey, traceparent: request.headers[.traceparent],
            mayRequestNotifications: caller.may(.sendNotifications))
        let limit = mode == .batch ? batchLimit : WireCoding.maximumBodySize
        return try await budget.reserving(request.declaredLength(upTo: limit)) {
            let body = try await request.bytes(upTo: limit)
            switch mode {
            case .structured: return try await delivery.answer(try reader.structured(body), mode.rawValue, wait)
            case .binary: return try await delivery.answer(try reader.binary(headers, body: body), mode.rawValue, wait)
            case .batch:
                let events = try reader.batch(body)
                if wait != nil, events.count > WaitTime.maximumEvents {
                    throw EventRefusal.invalid(
                        "the query parameter wait is allowed for at most \(WaitTime.maximumEvents) events; leave it out"
                    )
                }
                callers.charge(max(0, events.count - 1), to: caller)
                return await delivery.answer(events, of: caller.app, wait)
            }
        }
    }
}

extension Response {
    /// Returns `body`'s response, or a problem document for a refused event or another error.
    static func answeringPublisher(
        _ context: some RequestContext, body: () async throws -> Response
    ) async -> Response {
        await answering(context) {
            do {
                return try await body()
            } catch let refusal as EventRefusal {
                throw APIError(refusal)
            }
        }
    }
}

extension Request {
    /// The query parameter `wait`, if any.
    var wait: Duration? {
        get throws(EventRefusal) {
            guard let text = QueryParameters(self)["wait"] else { return nil }
            return try WaitTime.parse(text)
        }
    }

    /// The header `Idempotency-Key`, if any.
    var idempotencyKey: IdempotencyKey? {
        get throws(EventRefusal) {
            guard let text = headers[.idempotencyKey] else { return nil }
            return try IdempotencyKey(text)
        }
    }

    /// The bytes to reserve for the body: its `Content-Length`, or `limit` without one or above it.
    func declaredLength(upTo limit: Int) -> Int {
        guard let length = headers[.contentLength].flatMap({ Int($0) }), length >= 0 else { return limit }
        return min(length, limit)
    }
}
