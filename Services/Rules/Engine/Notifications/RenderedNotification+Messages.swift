package import FoundationEssentials
package import PushProtocol
package import RuleLanguage

extension RenderedNotification {
    /// Returns the messages to these recipients, at most ``Notification/maximumRecipients`` in each.
    ///
    /// - Parameter id: returns the id of a message from its index and recipients.
    package func notifications(
        to recipients: [Notification.Recipient], quietly: Bool, id: (Int, [Notification.Recipient]) -> UUID
    ) -> [Notification] {
        if isToChannels { return broadcasts(to: recipients, id: id) }
        let pushedContent = preview ?? content
        let content = quietly ? pushedContent.quiet : pushedContent
        return RenderedNotification.parts(of: recipients).enumerated().map { index, recipients in
            Notification(
                trace: Trace(
                    id: id(index, recipients), correlation: correlation, causation: correlation,
                    traceparent: traceparent),
                app: app, rule: rule, lane: lane, content: content, expiresAt: expiresAt, delivery: delivery,
                scope: scope, devices: devices, recipients: recipients)
        }
    }
}

extension RenderedNotification {
    /// One message to each channel.
    private func broadcasts(
        to recipients: [Notification.Recipient], id: (Int, [Notification.Recipient]) -> UUID
    ) -> [Notification] {
        recipients.enumerated().compactMap { index, recipient in
            Broadcast.Destination(channelLabel: recipient.user.rawValue).map { destination in
                Notification(
                    trace: Trace(
                        id: id(index, [recipient]), correlation: correlation, causation: correlation,
                        traceparent: traceparent),
                    app: app, rule: rule, lane: lane, content: content, expiresAt: expiresAt, delivery: delivery,
                    recipients: [], broadcast: Broadcast(notification: recipient.notification, to: destination))
            }
        }
    }
}

extension RenderedNotification {
    /// The maximum size of a notification without content and recipients, in bytes.
    private static let envelope = 8 * 1024
    /// The maximum size of the recipients of one message, in bytes.
    private static let recipientsRoom = 128 * 1024

    /// Whether one message can carry the notification within the limits of depth and size (``WireCoding``).
    var isSendable: Bool {
        let pushedContent = preview ?? content
        // The notification is an object around the content.
        guard pushedContent.depth < WireCoding.maximumDepth else { return false }
        let room = WireCoding.maximumBodySize - RenderedNotification.envelope - RenderedNotification.recipientsRoom
        if pushedContent.maximumEncodedSize <= room { return true }
        return (try? WireCoding.encode(pushedContent)).map { $0.count <= room } ?? false
    }

    /// Splits recipients into messages by ``Notification/maximumRecipients`` and ``recipientsRoom``.
    fileprivate static func parts(of recipients: [Notification.Recipient]) -> [[Notification.Recipient]] {
        var parts: [[Notification.Recipient]] = []
        var (begin, size) = (0, 0)
        for place in recipients.indices {
            // Ids, badge and member names take at most 96 bytes. Escapes can double the bytes of the user id.
            let bytes = 96 + 2 * recipients[place].user.rawValue.utf8.count
            if place > begin, size + bytes > recipientsRoom || place - begin == Notification.maximumRecipients {
                parts.append(Array(recipients[begin..<place]))
                (begin, size) = (place, 0)
            }
            size += bytes
        }
        guard begin < recipients.count else { return parts }
        return begin == 0 ? [recipients] : parts + [Array(recipients[begin...])]
    }
}

extension Content {
    /// Limits a badge to 99,999.
    package static func badge(_ count: Int) -> Int { min(count, 99_999) }

    /// This content without sound, at the interruption level `passive`.
    var quiet: Content {
        var quiet = self
        quiet.sound = nil
        quiet.interruptionLevel = .passive
        return quiet
    }
}
