import FoundationEssentials
import HTTPAuth
import HTTPTypes
import Hummingbird
import PushProtocol

/// `POST /v1/notifications`: sends a notification that the caller words (``DirectNotification``).
struct NotificationRoutes: Sendable {
    let frame: PublishingFrame

    func add(to router: Router<BasicRequestContext>) {
        frame.add("v1/notifications", for: .sendNotifications, to: router) { request, caller in
            try request.checkIsJSON()
            let reader = NotificationReader(
                app: caller.app, key: try request.idempotencyKey, traceparent: request.headers[.traceparent])
            return PublishingFrame.Reading(mode: "notification", limit: WireCoding.maximumBodySize) {
                body throws(EventRefusal) in
                [.success(try reader.event(body, at: Date()))]
            }
        }
    }
}
