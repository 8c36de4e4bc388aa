import FoundationEssentials
import PushProtocol
import PushSending

/// How APNs is spoken to for one app: `POST /3/device/<token>`, and `POST /4/broadcasts/apps/<bundle>` for a channel.
struct APNsWire: PushWire {
    /// The app's bundle id.
    let topic: String
    /// Asked for each push: a certificate that changes may be for other topics.
    var authentication: @Sendable () -> APNsAuthentication = { .token }

    /// The headers, and the body for each badge that occurs among the targets: rendered once, shared by all of them.
    struct Rendering: Sendable {
        let headers: Result<APNsHeaders, LocalRejection>
        let bodies: [Int?: Result<[UInt8], LocalRejection>]
        /// For the targets that are channels; `nil` when none is.
        var broadcast: Result<APNsBroadcast, LocalRejection>?
    }

    func render(_ push: Push, now: Timestamp) -> Rendering {
        var rendering = renderForDevices(push)
        if push.targets.contains(where: { $0.address == .channel }) {
            rendering.broadcast = Result { () throws(LocalRejection) in
                if let objection = authentication().objection(to: .liveActivity, topic: topic) {
                    throw LocalRejection(objection)
                }
                return try APNsBroadcast(push, bundle: topic)
            }
        }
        return rendering
    }

    private func renderForDevices(_ push: Push) -> Rendering {
        let headers = Result { () throws(LocalRejection) in
            let headers = try APNsHeaders(for: push.content, bundle: topic, expiresAt: push.expiresAt)
            if let objection = authentication().objection(to: headers.pushType, topic: headers.topic) {
                throw LocalRejection(objection)
            }
            return headers
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

    func begin(_ rendering: Rendering, in batch: inout RequestBatch) {
        // Without headers there is nothing to begin: ``add`` refuses every target.
        guard case .success(let headers) = rendering.headers else { return }
        batch.begin(shared: headers.shared, own: headers.own)
    }

    func add(_ target: Push.Target, from rendering: Rendering, to batch: inout RequestBatch) throws(LocalRejection) {
        switch target.address {
        case nil: try add(device: target, from: rendering, to: &batch)
        case .channel:
            guard let broadcast = rendering.broadcast else { throw LocalRejection("not-rendered") }
            try broadcast.get().add(target.token.secret, to: &batch)
            // What follows may be a device again.
            begin(rendering, in: &batch)
        case .fid, .topic, .condition: throw LocalRejection("address-not-of-apns")
        }
    }

    private func add(
        device target: Push.Target, from rendering: Rendering, to batch: inout RequestBatch
    ) throws(LocalRejection) {
        let headers = try rendering.headers.get()
        guard let token = DeviceToken(target.token.secret, for: .apns) else {
            throw LocalRejection("malformed-token", suspectToken: true)
        }
        guard let body = rendering.bodies[target.badge] else { throw LocalRejection("not-rendered") }
        let bytes = try body.get()
        batch.write("/3/device/")
        batch.write(token.secret)
        batch.endValue()
        batch.write(target.pushID)
        batch.endValue()
        if headers.collapsesByNotification {
            batch.write(target.notification)
            batch.endValue()
        }
        batch.endRequest(body: bytes)
    }

    /// A refused credential is refused for everybody.
    func goesOn(after status: Int) -> Bool { status != 403 }

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
