import FoundationEssentials
import HTTPAuth
import HTTPTypes
import Hummingbird
import PushProtocol

/// `POST /v1/notifications`: sends a notification that the caller words (``DirectNotification``).
struct NotificationRoutes: Sendable {
    let callers: PublisherAuthenticator
    let delivery: EventDelivery
    let budget: ByteBudget

    func add(to router: Router<BasicRequestContext>) {
        router.post("v1/notifications") { request, context in
            await Response.answeringPublisher(context) {
                let caller = try await callers.publisher(request, to: .sendNotifications)
                return try await answer(request, from: caller)
            }
        }
    }

    private func answer(_ request: Request, from caller: Publisher) async throws -> Response {
        let wait = try request.wait
        let reader = NotificationReader(
            app: caller.app, key: try request.idempotencyKey, traceparent: request.headers[.traceparent])
        let limit = WireCoding.maximumBodySize
        return try await budget.reserving(request.declaredLength(upTo: limit)) {
            let event = try reader.event(try await request.json(upTo: limit), at: Date())
            return try await delivery.answer(event, "notification", wait)
        }
    }
}
