import FoundationEssentials
package import PushProtocol
package import PushSending

/// The message for each badge that occurs among the targets of a push, written but for what each target fills in. The
/// same for every project.
package final class FCMRendering: PushRendering {
    typealias Message = Result<Text, LocalRejection>

    /// A message without its target, and how long it says that the push still has.
    struct Text: Sendable {
        let template: JSONTemplate
        let countdown: Countdown?

        init(_ template: JSONTemplate, expiresAt: Timestamp?, now: Timestamp) {
            self.template = template
            let places = template.times(filledWith: FCMRendering.idLength)
            countdown = expiresAt.flatMap {
                places.isEmpty ? nil : Countdown(until: $0, most: FCMLimits.maximumTTL, places: places, now: now)
            }
        }
    }

    /// The characters of a notification's id.
    private static let idLength = 36

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
            return .success(Text(message, expiresAt: push.expiresAt, now: now))
        }
        return Result { () throws(LocalRejection) in
            let content = push.content
            if let key = content.collapseKey, let problem = CollapseID.problem(with: key) {
                throw LocalRejection("collapse-id-\(problem)")
            }
            let message = FCMMessage(content: content, badge: badge, expiresAt: push.expiresAt, now: now)
            return Text(try message.template(), expiresAt: push.expiresAt, now: now)
        }
    }

    package func begin(in batch: inout RequestBatch) { batch.begin(Self.letter) }

    package func add(_ target: Push.Target, to batch: inout RequestBatch) throws(LocalRejection) {
        let address = try FCMAddress(target)
        guard let message = messages[target.badge] else { throw LocalRejection("not-rendered") }
        let text = try message.get()
        let (body, shift) = body(address, message: text.template, notification: target.notification)
        batch.endRequest(body: body, countdown: text.countdown, shift: shift)
    }

    /// `{"message":{"token":…,` and then the members of `message`; and how much later in it than in `message` these are.
    private func body(
        _ address: FCMAddress, message: JSONTemplate, notification: UUID
    ) -> (body: [UInt8], shift: Int) {
        // Hardly any token has something to escape.
        let escaped = address.text.isPlainJSON ? nil : JSONText.bytes(of: .string(address.text))
        let filled = message.count(filledWith: Self.idLength)
        var shift = 0
        let body = ByteCursor.bytes(atMost: filled + (escaped?.count ?? address.text.utf8.count) + 64) { json in
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
            // The message's own bracket is left out.
            shift = json.count - 1
            message.write(from: 1, filledWith: notification, to: &json)
            json.put(isDryRun ? #","validate_only":true}"# : "}")
        }
        return (body, shift)
    }
}
