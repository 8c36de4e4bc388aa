import HTTPAuth
import HTTPTypes
import Hummingbird
import PushProtocol

extension HTTPField.Name {
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
    static let traceparent = HTTPField.Name("traceparent")!
    static let app = HTTPField.Name("Heliograph-App")!
}

/// The common part of the routes for publishers: authentication, the memory of bodies, publishing, the wait and the
/// answer.
struct PublishingFrame: Sendable {
    let callers: PublisherAuthenticator
    let delivery: EventDelivery
    let budget: ByteBudget

    /// The way from a request's body to events.
    struct Reading {
        /// The label of the metric: a ``ContentMode``, or `notification`.
        var mode: String
        /// Whether each event has a result of its own.
        var isBatch = false
        /// The maximum size of the body in bytes.
        var limit: Int
        var events: ([UInt8]) throws(EventRefusal) -> [Result<IncomingEvent, EventRefusal>]
    }

    /// Adds a POST route for publishers with an operation. `read` checks the request's headers.
    func add(
        _ path: RouterPath, for operation: APIKey.Operation, to router: Router<BasicRequestContext>,
        _ read: @escaping @Sendable (Request, Publisher) throws -> Reading
    ) {
        router.post(path) { request, context in
            await Response.answeringPublisher(context) {
                let caller = try await callers.publisher(request, to: operation)
                let wait = try request.wait
                let reading = try read(request, caller)
                let receipts = try await publish(request, from: caller, reading, isWaiting: wait != nil)
                return try await delivery.answer(
                    receipts, isBatch: reading.isBatch, wait, showsReactions: caller.may(.readEvents))
            }
        }
    }

    /// Reads and publishes the body. Its memory is free after the broker's confirm, before any wait.
    private func publish(
        _ request: Request, from caller: Publisher, _ reading: Reading, isWaiting: Bool
    ) async throws -> [EventReceipt] {
        try await budget.reserving(request.declaredLength(upTo: reading.limit), for: caller.app) {
            let events: [Result<IncomingEvent, EventRefusal>]
            do {
                events = try reading.events(try await request.bytes(upTo: reading.limit))
                if isWaiting, events.count > WaitTime.maximumEvents {
                    throw EventRefusal.invalid(
                        "the query parameter wait is allowed for at most \(WaitTime.maximumEvents) events; leave it out"
                    )
                }
            } catch {
                EventDelivery.count(["refused": 1], of: caller.app, reading.mode)
                throw error
            }
            callers.charge(max(0, events.count - 1), to: caller)
            return await delivery.publish(events, of: caller.app, reading.mode)
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
