import FoundationEssentials
package import PushProtocol
package import PushSending

/// The message for each badge that occurs among the targets of a push, written but for what each target fills in. The
/// same for every project.
package final class FCMRendering: PushRendering {
    typealias Message = Result<JSONTemplate, LocalRejection>

    enum Messages: Sendable {
        /// The same for everybody.
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

    private static let letter = RequestBatch.Letter(shared: [ProviderHeader("content-type", "application/json")])

    package init(_ push: Push, now: Timestamp) {
        let text = push.contentText
        // What is left as text lays nothing over, and is no dry run.
        isDryRun = text == nil && push.content.fcm?.validateOnly ?? false
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

    private static func message(_ push: Push, _ text: ContentText?, badge: Int?, now: Timestamp) -> Message {
        if let text, let message = FCMMessage.write(text, badge: badge, expiresAt: push.expiresAt, now: now) {
            return .success(message)
        }
        return Result { () throws(LocalRejection) in
            let content = push.content
            if let key = content.collapseKey, !(1...64).contains(key.utf8.count) {
                throw LocalRejection("collapse-id-not-1-to-64-bytes")
            }
            let message = try FCMMessage(content: content, badge: badge, expiresAt: push.expiresAt, now: now).rendered
            try FCMLimits.check(message)
            return JSONTemplate(message, gap: FCMMessage.notificationGap)
        }
    }

    package func begin(in batch: inout RequestBatch) { batch.begin(Self.letter) }

    package func add(_ target: Push.Target, to batch: inout RequestBatch) throws(LocalRejection) {
        let address = try FCMAddress(target)
        guard let message = messages[target.badge] else { throw LocalRejection("not-rendered") }
        batch.endRequest(body: body(address, message: try message.get(), notification: target.notification))
    }

    /// `{"message":{"token":…,` and then the members of `message`.
    private func body(_ address: FCMAddress, message: JSONTemplate, notification: UUID) -> [UInt8] {
        // Hardly any token has something to escape.
        let escaped = address.text.isPlainJSON ? nil : JSONText.bytes(of: .string(address.text))
        let filled = message.count(filledWith: 36)
        return ByteCursor.bytes(atMost: filled + (escaped?.count ?? address.text.utf8.count) + 64) { json in
            json.put(#"{"message":{""#)
            json.put(text: address.member)
            json.put(#"":"#)
            if let escaped {
                escaped.withUnsafeBufferPointer { json.put($0) }
            } else {
                json.put(quoted: address.text)
            }
            // An override may have taken away everything that was rendered.
            if filled > 2 { json.put(",") }
            message.write(from: 1, filledWith: notification, to: &json)
            json.put(isDryRun ? #","validate_only":true}"# : "}")
        }
    }
}
