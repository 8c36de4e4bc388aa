package import FoundationEssentials

/// A change to a registration, or to all of a user's. Exchange `devices`, routing key `event.<change>`. Contains no
/// token. Published at least once, in order for each device; a duplicate has the same id.
package struct DeviceEvent: WireMessage, Codable, Hashable {
    package static let messageType = "heliograph.device-event"
    package static let messageVersion = 1

    package var trace: Trace
    package var app: AppID
    package var change: Change
    /// The registration's user when the event occurred.
    package var user: UserID
    /// Absent for ``Change/userErased``.
    package var device: Device?
    /// The reason, as text for people; absent where none is needed.
    package var reason: String?
    /// When the registry made the change.
    package var at: Timestamp
    /// Pushes addressed from a registration up to this time (`registeredAt`) must no longer be sent to the device.
    /// Later registrations of the device have a later millisecond. Absent where such pushes may still reach the right
    /// user.
    package var revokes: Timestamp?

    package init(
        trace: Trace, app: AppID, change: Change, user: UserID, device: Device?, reason: String? = nil, at: Timestamp,
        revokes: Timestamp? = nil
    ) {
        self.trace = trace
        self.app = app
        self.change = change
        self.user = user
        self.device = device
        self.reason = reason
        self.at = at
        self.revokes = revokes
    }

    private enum CodingKeys: String, CodingKey {
        case trace, app
        case change = "past"
        case user, device, reason, at, revokes
    }

    /// The kind of change: the last word of the routing key.
    package enum Change: String, Codable, Hashable, Sendable, CaseIterable {
        /// The user receives pushes on it from now on: it was created, reactivated, taken over or updated.
        case registered
        /// Replaced by another token or another user.
        case replaced
        case signedOut = "signed-out"
        /// Deactivated by a provider's response.
        case deactivated
        /// Ended here because it belongs to the other environment, where it is `registered`.
        case corrected
        /// Not seen for a month, but still active; or, without `active`, unused for so long that the provider has
        /// dropped it.
        case stale
        /// Removed because the user exceeded the device limit.
        case evicted
        case erased
        /// The user requested erasure: consumers delete all data about them.
        case userErased = "user-erased"
    }

    /// The registration, without its token.
    package struct Device: Codable, Hashable, Sendable {
        package var id: UUID
        package var provider: Provider
        package var environment: ProviderEnvironment
        package var kind: RegistrationKind
        package var installation: InstallationID?
        /// Whether the user receives pushes on it after the change.
        package var active: Bool

        package init(
            id: UUID, provider: Provider, environment: ProviderEnvironment, kind: RegistrationKind,
            installation: InstallationID? = nil, active: Bool
        ) {
            self.id = id
            self.provider = provider
            self.environment = environment
            self.kind = kind
            self.installation = installation
            self.active = active
        }
    }

    package var routingKey: String { Self.routingKey(change) }

    package static func routingKey(_ change: Change) -> String { "event.\(change.rawValue)" }
}
