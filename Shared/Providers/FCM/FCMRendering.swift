package import PushProtocol
import FoundationEssentials

/// One message for each distinct badge of a push's targets, encoded except for each target's part. Independent of the
/// project.
package final class FCMRendering: PushRendering {
    typealias Message = Result<MessageText, LocalRejection>

    /// A message without its target, with the positions of its remaining lifetime.
    struct MessageText: Sendable {
        let template: JSONTemplate
        let countdown: TTLCountdown?

        init(_ template: JSONTemplate, expiresAt: Timestamp?, now: Timestamp) {
            self.template = template
            let offsets = template.timeOffsets(filledWith: FCMRendering.idLength)
            countdown = expiresAt.flatMap {
                offsets.isEmpty
                    ? nil : TTLCountdown(until: $0, maximum: FCMLimits.maximumTTL, offsets: offsets, now: now)
            }
        }
    }

    /// The length of a notification id.
    private static let idLength = 36

    enum Messages: Sendable {
        /// One message for all targets.
        case one(Message)
        case byBadge([Int?: Message])

        subscript(badge: Int?) -> Message? {
            switch self {
            case .one(let message): message
            case .byBadge(let messages): messages[badge]
            }
        }
    }

    let messages: Messages
    private let isDryRun: Bool

    private static let template = ProviderRequestBatch.HeaderTemplate(shared: [
        ProviderHeader("content-type", "application/json")
    ])

    /// - Parameter validateOnly: FCM validates every message and delivers none.
    package init(_ push: Push, now: Timestamp, validateOnly: Bool = false) {
        let text = push.encodedContent
        // An encoded content has no overrides, so it is not a dry run.
        isDryRun = validateOnly || text == nil && push.content.fcm?.validateOnly ?? false
        let first = push.targets.first?.badge
        if push.targets.allSatisfy({ $0.badge == first }) {
            messages = .one(Self.message(push, text, badge: first, now: now))
        } else {
            var messages: [Int?: Message] = [:]
            for badge in Set(push.targets.map(\.badge)) {
                messages[badge] = Self.message(push, text, badge: badge, now: now)
            }
            self.messages = .byBadge(messages)
        }
    }

    private static func message(_ push: Push, _ text: EncodedContent?, badge: Int?, now: Timestamp) -> Message {
        if let text, let message = FCMMessage.write(text, badge: badge, expiresAt: push.expiresAt, now: now) {
            return .success(MessageText(message, expiresAt: push.expiresAt, now: now))
        }
        return Result { () throws(LocalRejection) in
            let content = push.content
            if let key = content.collapseKey, let problem = CollapseID.problem(with: key) {
                throw LocalRejection("collapse-id-\(problem)")
            }
            let message = FCMMessage(content: content, badge: badge, expiresAt: push.expiresAt, now: now)
            return MessageText(try message.template(), expiresAt: push.expiresAt, now: now)
        }
    }

    package func begin(in batch: inout ProviderRequestBatch) { batch.begin(Self.template) }

    package func add(_ target: Push.Target, to batch: inout ProviderRequestBatch) throws(LocalRejection) {
        let address = try FCMAddress(target)
        guard let message = messages[target.badge] else { throw LocalRejection("not-rendered") }
        let text = try message.get()
        let (body, shift) = body(address, message: text.template, notification: target.notification)
        batch.endRequest(body: body, countdown: text.countdown, shift: shift)
    }

    /// Encodes `{"message":{"token":…,` followed by the members of `message`. Also returns the offset of these
    /// members.
    private func body(
        _ address: FCMAddress, message: JSONTemplate, notification: UUID
    ) -> (body: [UInt8], shift: Int) {
        let filled = message.count(filledWith: Self.idLength)
        var shift = 0
        let body = ByteWriter.bytes(expected: filled + address.text.utf8.count + 64) { json in
            json.put(#"{"message":{""#)
            json.put(text: address.member)
            json.put(#"":"#)
            json.string(address.text)
            // Overrides may have removed all rendered members.
            if filled > 2 { json.put(",") }
            // Skips the template's opening brace.
            shift = json.count - 1
            message.write(from: 1, filledWith: notification, to: &json)
            json.put(isDryRun ? #","validate_only":true}"# : "}")
        }
        return (body, shift)
    }
}
