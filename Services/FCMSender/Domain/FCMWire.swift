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
        let isDryRun: Bool
    }

    func render(_ push: Push, now: Timestamp) -> Rendering { Self.render(push, now: now) }

    /// What is the same for every project.
    static func render(_ push: Push, now: Timestamp) -> Rendering {
        var messages: [Int?: Result<JSONTemplate, LocalRejection>] = [:]
        for badge in Set(push.targets.map(\.badge)) {
            messages[badge] = Result { () throws(LocalRejection) in
                if let key = push.content.collapseKey, !(1...64).contains(key.utf8.count) {
                    throw LocalRejection("collapse-id-not-1-to-64-bytes")
                }
                let message = try FCMMessage(content: push.content, badge: badge, expiresAt: push.expiresAt, now: now)
                    .rendered
                try FCMLimits.check(message)
                return JSONTemplate(message, gap: FCMMessage.notificationGap)
            }
        }
        return Rendering(messages: messages, isDryRun: push.content.fcm?.validateOnly ?? false)
    }

    func begin(_ rendering: Rendering, in batch: inout RequestBatch) {
        batch.begin(shared: [ProviderHeader("content-type", "application/json")])
    }

    func add(_ target: Push.Target, from rendering: Rendering, to batch: inout RequestBatch) throws(LocalRejection) {
        let address = try FCMAddress(target)
        guard let message = rendering.messages[target.badge] else { throw LocalRejection("not-rendered") }
        let filled = try message.get().filled(with: Hexadecimal.text(of: target.notification))
        batch.write(path)
        batch.endValue()
        batch.endRequest(body: Self.body(address, message: filled, isDryRun: rendering.isDryRun))
    }

    /// 401 and 403 may be about one target alone.
    func goesOn(after status: Int) -> Bool { true }

    /// `{"message":{"token":…,` and then the members of `message`, which always has some.
    private static func body(_ address: FCMAddress, message: [UInt8], isDryRun: Bool) -> [UInt8] {
        let quoted = JSONText.bytes(of: .string(address.text))
        var body: [UInt8] = []
        body.reserveCapacity(message.count + quoted.count + 48)
        body += #"{"message":{""#.utf8
        body += address.member.utf8
        body += #"":"#.utf8
        body += quoted
        // An override may have taken away everything that was rendered.
        if message.count > 2 { body.append(UInt8(ascii: ",")) }
        body += message.dropFirst()
        if isDryRun { body += #","validate_only":true"#.utf8 }
        body.append(UInt8(ascii: "}"))
        return body
    }
}
