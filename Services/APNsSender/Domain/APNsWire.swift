import FoundationEssentials
import PushProtocol
import PushSending

/// How APNs is spoken to for one app: `POST /3/device/<token>`.
struct APNsWire: PushWire {
    /// The app's bundle id.
    let topic: String

    /// The headers, and the body for each badge that occurs among the targets: rendered once, shared by all of them.
    struct Rendering: Sendable {
        let headers: Result<APNsHeaders, LocalRejection>
        let bodies: [Int?: Result<[UInt8], LocalRejection>]
    }

    func render(_ push: Push, now: Timestamp) -> Rendering {
        let headers = Result { () throws(LocalRejection) in
            try APNsHeaders(for: push.content, bundle: topic, expiresAt: push.expiresAt)
        }
        guard case .success(let shared) = headers else { return Rendering(headers: headers, bodies: [:]) }
        var bodies: [Int?: Result<[UInt8], LocalRejection>] = [:]
        for badge in Set(push.targets.map(\.badge)) {
            bodies[badge] = Result { () throws(LocalRejection) in
                try Self.body(push.content, badge: badge, pushType: shared.pushType)
            }
        }
        return Rendering(headers: headers, bodies: bodies)
    }

    func request(to target: Push.Target, from rendering: Rendering) throws(LocalRejection) -> ProviderRequest {
        let headers = try rendering.headers.get()
        guard let token = DeviceToken(target.token.secret, for: .apns) else {
            throw LocalRejection("malformed-token", suspectToken: true)
        }
        guard let body = rendering.bodies[target.badge] else { throw LocalRejection("not-rendered") }
        let id = ProviderHeader("apns-id", target.pushID.uuidString.lowercased(), neverIndexed: true)
        return ProviderRequest(
            path: "/3/device/\(token.secret)",
            headers: [id] + headers.fields(notification: target.notification.uuidString.lowercased()),
            body: try body.get())
    }

    private static func body(
        _ content: Content, badge: Int?, pushType: APNsPushType
    ) throws(LocalRejection) -> [UInt8] {
        let payload = try APNsPayload.render(content, badge: badge)
        try pushType.check(payload)
        let body = JSONText.bytes(of: payload)
        guard body.count <= pushType.maximumPayload else { throw LocalRejection("payload-too-large") }
        return body
    }
}
