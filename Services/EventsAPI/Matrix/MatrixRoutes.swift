import Crypto
import HTTPAuth
import HTTPTypes
import Hummingbird
import PushProtocol

/// `POST /_matrix/push/v1/notify`: a push gateway for Matrix homeservers.
struct MatrixRoutes: Sendable {
    /// The maximum body, in bytes. A Matrix event has at most 64 KiB.
    static let maximumBody = 96 << 10

    let key: SymmetricKey
    let publisher: EventPublisher
    let budget: ByteBudget
    /// Limits the requests about one user.
    let limit: RateLimiter<String>
    let isConfigured: @Sendable (AppID) -> Bool

    func add(to router: Router<BasicRequestContext>) {
        router.post("_matrix/push/v1/notify") { request, context in
            await Response.answeringPublisher(context) { try await answer(request) }
        }
    }

    private func answer(_ request: Request) async throws -> Response {
        try await budget.reserving(request.declaredLength(upTo: Self.maximumBody)) {
            let notify = try MatrixNotify(try await request.bytes(upTo: Self.maximumBody))
            var rejected: [JSONValue] = []
            var events: [IncomingEvent] = []
            var seen: Set<MatrixPushkey> = []
            for device in notify.devices {
                guard let pushkey = MatrixPushkey(device.pushkey, key: key), isConfigured(pushkey.app) else {
                    rejected.append(.string(device.pushkey))
                    continue
                }
                guard seen.insert(pushkey).inserted else { continue }
                try limit.admit("\(pushkey.app.rawValue) \(pushkey.user.rawValue)")
                let reader = EventReader(app: pushkey.app, mayRequestNotifications: true)
                events.append(try reader.structured(try notify.event(to: pushkey, sound: device.sound)))
            }
            // The homeserver sends the whole request again. Events with the same id are not decided twice.
            if let refusal = await publisher.publish(events).lazy.compactMap({ $0 }).first { throw refusal }
            return .json(.ok, ["rejected": .array(rejected)])
        }
    }
}
