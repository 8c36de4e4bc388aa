import FoundationEssentials
import PushProtocol
import PushSending

/// The message for each badge that occurs among the targets of a push, written but for what each target fills in. The
/// same for every project.
final class FCMRendering: PushRendering {
    let messages: [Int?: Result<JSONTemplate, LocalRejection>]
    private let isDryRun: Bool

    private static let letter = RequestBatch.Letter(shared: [ProviderHeader("content-type", "application/json")])

    init(_ push: Push, now: Timestamp) {
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
        self.messages = messages
        isDryRun = push.content.fcm?.validateOnly ?? false
    }

    func begin(in batch: inout RequestBatch) { batch.begin(Self.letter) }

    func add(_ target: Push.Target, to batch: inout RequestBatch) throws(LocalRejection) {
        let address = try FCMAddress(target)
        guard let message = messages[target.badge] else { throw LocalRejection("not-rendered") }
        let filled = try message.get().filled(with: Hexadecimal.text(of: target.notification))
        batch.endRequest(body: Self.body(address, message: filled, isDryRun: isDryRun))
    }

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
