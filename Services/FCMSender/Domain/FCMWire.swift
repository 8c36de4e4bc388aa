import FoundationEssentials
import PushProtocol
import PushSending

/// How FCM v1 is spoken to for one project: `POST /v1/projects/<project>/messages:send`.
struct FCMWire: PushWire {
    private let path: String

    init(project: String) { path = "/v1/projects/\(project)/messages:send" }

    /// The message for each badge that occurs among the targets, written but for what each target fills in.
    struct Rendering: Sendable {
        let messages: [Int?: Result<JSONTemplate, LocalRejection>]
    }

    func render(_ push: Push, now: Timestamp) -> Rendering {
        var messages: [Int?: Result<JSONTemplate, LocalRejection>] = [:]
        for badge in Set(push.targets.map(\.badge)) {
            messages[badge] = Result { () throws(LocalRejection) in
                let message = FCMMessage(content: push.content, badge: badge, expiresAt: push.expiresAt, now: now)
                    .rendered
                if let key = push.content.collapseKey, !(1...64).contains(key.utf8.count) {
                    throw LocalRejection("collapse-id-not-1-to-64-bytes")
                }
                try FCMLimits.check(message)
                return JSONTemplate(message, gap: FCMMessage.notificationGap)
            }
        }
        return Rendering(messages: messages)
    }

    func request(to target: Push.Target, from rendering: Rendering) throws(LocalRejection) -> ProviderRequest {
        guard let token = DeviceToken(target.token.secret, for: .fcm) else {
            throw LocalRejection("malformed-token", suspectToken: true)
        }
        guard let message = rendering.messages[target.badge] else { throw LocalRejection("not-rendered") }
        let filled = try message.get().filled(with: target.notification.uuidString.lowercased())
        return ProviderRequest(
            path: path, headers: [ProviderHeader("content-type", "application/json")],
            body: Self.body(token: token, message: filled))
    }

    /// `{"message":{"token":…,` and then the members of `message`, which always has some.
    private static func body(token: DeviceToken, message: [UInt8]) -> [UInt8] {
        let quoted = JSONText.bytes(of: .string(token.secret))
        var body: [UInt8] = []
        body.reserveCapacity(message.count + quoted.count + 24)
        body += #"{"message":{"token":"#.utf8
        body += quoted
        body.append(UInt8(ascii: ","))
        body += message.dropFirst()
        body.append(UInt8(ascii: "}"))
        return body
    }
}
