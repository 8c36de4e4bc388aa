package import PushProtocol

extension Rule {
    /// The conditions of a rule's push: preferences, presence, caps, quiet hours, schedule and digest.
    package struct Policy: Hashable, Sendable {
        /// The name of a ``PreferenceType`` of the file; `nil`: users have no separate switch for it.
        package var type: String?
        /// The names by which a user can mute or follow the notification, the widest first: `family/7`, `thread/12`.
        ///
        /// A name that renders to an empty string is ignored.
        package var mutes: [Template] = []
        package var presence: Presence = .ignored
        /// Names of caps of the file. All of them must allow a push, and the push counts in all of them.
        package var caps: [String] = []
        package var overflow: Overflow = .inbox
        package var quietHours: QuietHours = .hold
        /// The maximum time that it is held. After that, it goes to the inbox without a push.
        package var holdFor = Policy.defaultHold
        /// Whether the inbox keeps the notification.
        package var inbox = true
        /// The item that the notification is about.
        ///
        /// While the notification waits, a later event of the same rule about the item replaces it. An event under
        /// `done` cancels it.
        package var item: Template?
        var schedule: Schedule?
        package var digest: Digest?
        package var dedupe: Dedupe?
        /// Whether ``DeliveryReport`` events are published for the notification.
        package var isReported = false

        /// The policy of a rule without one.
        package static let standard = Policy()
        static let defaultHold = Duration.seconds(86_400)

        /// The presence that suppresses a push.
        package enum Presence: String, Hashable, Sendable, CaseIterable {
            case ignored
            /// The app is open.
            case app
            /// The app shows the notification's thread.
            case thread
        }

        /// The action for a notification over a cap.
        package enum Overflow: String, Hashable, Sendable, CaseIterable { case inbox, hold, digest }

        package enum QuietHours: String, Hashable, Sendable, CaseIterable {
            /// Holds it until quiet hours end.
            case hold
            /// Pushes it without sound, at the interruption level `passive`.
            case silent
            case inbox
            /// Pushes it as usual.
            case bypass
        }

        /// Suppresses a notification if the user got one with the same key within this time.
        package struct Dedupe: Hashable, Sendable {
            package var key: Template
            package var within: Duration

            package static let longest = Duration.seconds(30 * 86_400)
        }

        /// Applies the defaults of kinds that cannot be delayed: no inbox, no quiet hours.
        ///
        /// - Parameter isSet: whether the rule sets its action in quiet hours.
        mutating func applyMomentaryDefaults(setsQuietHours isSet: Bool) {
            inbox = false
            if !isSet { quietHours = .bypass }
        }

        /// Whether all notifications go to a digest, not only those over a cap.
        package var digestsAll: Bool { digest != nil && overflow != .digest }
    }
}

/// A type of notification that users can switch on or off.
package struct PreferenceType: Hashable, Sendable {
    package var about = ""
    /// The default for users without a choice.
    package var isOn = true
    /// Bypasses preferences, presence, repeats, caps and quiet hours, except ``Cap/criticalCap``.
    ///
    /// Only the rule file can set it, not an event.
    package var isCritical = false
}

/// A maximum number of pushes to a user in a sliding window.
package struct Cap: Hashable, Sendable {
    package var limit: Int
    package var window: Duration

    /// Bounds the length of a user's stored cap history.
    static let highestLimit = 100
    /// The only cap of critical notifications. It limits the damage of an upstream fault.
    package static let criticalCap = Cap(limit: 20, window: .seconds(3600))
    /// The name of the history for ``criticalCap``. Rule files cannot use this name.
    package static let criticalLog = "!critical"

    /// Returns the time of the next allowed push; `nil` if a push is allowed now.
    ///
    /// - Parameter log: the times of earlier pushes, ascending.
    package func nextPush(after log: [Timestamp], now: Timestamp) -> Timestamp? {
        guard log.count >= limit else { return nil }
        let nextPush = log[log.count - limit] + window
        return nextPush > now ? nextPush : nil
    }
}
