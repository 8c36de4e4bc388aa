package import FoundationEssentials
package import PushProtocol

/// The message that removes copies of notifications that a user's phones show.
///
/// A background push: the app on the phone reads the identifiers and removes the copies (deploy/clients). Apple allows
/// two or three background pushes an hour for a device, and keeps only the newest for a device that is offline. So a
/// user gets at most ``budget`` commands in ``period``, and each command repeats the identifiers of earlier ones.
package enum ClearCommand {
    /// The rule name of clear commands. No rule file can use this name.
    package static let rule = "!clear"
    /// The member of the push's data: an array of identifiers. FCM carries it as JSON text.
    package static let member = "heliograph_clear"
    /// The delay after the first copy. Copies that are noted within it share the command.
    package static let pause = Duration.seconds(1)
    /// The maximum number of commands to a user in ``period``.
    package static let budget = 3
    package static let period = Duration.seconds(3600)
    /// The time after which a command expires, and for which its identifiers are repeated.
    package static let lifetime = Duration.seconds(7 * 86_400)
    /// The maximum number of identifiers in one command, and the maximum of their bytes. APNs and FCM take 4096 bytes.
    package static let maximumCopies = 40
    static let maximumBytes = 3000
    /// A later command replaces an undelivered earlier one.
    static let collapseKey = "heliograph-clear"

    /// A copy that phones show or may show.
    package struct Copy: Hashable, Sendable {
        package var notification: UUID
        /// The collapse id on the phone.
        package var identifier: String
        /// Whether an earlier command named it.
        package var isSent: Bool

        package init(notification: UUID, identifier: String, isSent: Bool) {
            self.notification = notification
            self.identifier = identifier
            self.isSent = isSent
        }

        /// A collapse key may name a later notification by now, so only notification ids are repeated.
        fileprivate var isRepeatable: Bool { identifier == notification.uuidString.lowercased() }

        /// An upper bound of the bytes in the body: quoted and separated, and escaped twice in FCM's JSON text.
        fileprivate var bytes: Int {
            identifier.utf8.reduce(6) { $0 + ($1 == UInt8(ascii: "\"") || $1 == UInt8(ascii: "\\") ? 4 : 1) }
        }
    }

    /// Returns the copies of the next command, the unsent ones first. The others go with a later command.
    package static func chosen(among copies: [Copy]) -> [Copy] {
        var chosen: [Copy] = []
        var bytes = 0
        for copy in copies.filter({ !$0.isSent }) + copies.filter({ $0.isSent && $0.isRepeatable }) {
            bytes += copy.bytes
            guard chosen.count < maximumCopies, bytes <= maximumBytes else { break }
            chosen.append(copy)
        }
        return chosen
    }

    /// Returns the time of the next command; `nil` if the budget allows one now.
    ///
    /// - Parameter sent: the times of earlier commands.
    package static func next(after sent: [Timestamp], now: Timestamp) -> Timestamp? {
        let recent = sent.filter { $0 > now - period }.sorted()
        return recent.count < budget ? nil : recent[recent.count - budget] + period
    }

    /// Returns the message that clears these copies.
    ///
    /// - Parameters:
    ///   - command: its notification id, to which the outcomes refer.
    ///   - lane: `bulk` while many users get commands.
    package static func notification(
        clearing copies: [Copy], of person: PersonKey, command: UUID, lane: Lane, now: Timestamp
    ) -> Notification {
        let id = command.uuidString.lowercased()
        return Notification(
            trace: Trace(id: command, correlation: id, causation: id, traceparent: nil), app: person.app, rule: rule,
            lane: lane,
            content: Content(
                data: [member: .array(copies.map { .string($0.identifier) })], silent: true, collapseKey: collapseKey),
            expiresAt: now + lifetime,
            recipients: [Notification.Recipient(user: person.user, notification: command)])
    }

    /// The id of a command: one for each version of the user's row.
    package static func id(of person: PersonKey, version: Int) -> UUID {
        DerivedID.uuid5(DerivedID.namespace, ["clear", person.app.rawValue, person.user.rawValue, "\(version)"])
    }
}
