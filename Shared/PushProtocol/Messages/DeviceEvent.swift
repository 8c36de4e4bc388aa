package import FoundationEssentials

/// What has happened to a registration, or to all of a user's. Exchange `devices`, routing key `event.<past>`. Holds no
/// token. Published at least once, in the order of what happened to each device; a repeat has the same id.
package struct DeviceEvent: WireMessage, Hashable {
    package static let messageType = "heliograph.device-event"
    package static let messageVersion = 1

    package var trace: Trace
    package var app: AppID
    package var past: Past
    /// Whose registration it was when it happened.
    package var user: UserID
    /// Absent for ``Past/userErased``.
    package var device: Device?
    /// Why, in a few words for people; absent for what needs no reason.
    package var reason: String?
    /// When the registry did it.
    package var at: Timestamp
    /// Where the user has lost the device: a push to it that was addressed from a registration of up to this moment
    /// (`registeredAt`) is to be sent no more, wherever it is under way. Every later registration of the device is of a
    /// later millisecond. Absent where such a push may well reach the right person.
    package var revokes: Timestamp?

    package init(
        trace: Trace, app: AppID, past: Past, user: UserID, device: Device?, reason: String? = nil, at: Timestamp,
        revokes: Timestamp? = nil
    ) {
        self.trace = trace
        self.app = app
        self.past = past
        self.user = user
        self.device = device
        self.reason = reason
        self.at = at
        self.revokes = revokes
    }

    /// What happened: the last word of the routing key.
    package enum Past: String, Codable, Hashable, Sendable, CaseIterable {
        /// Pushes to the user go to it from now on: it is new, revived, taken over, or described anew.
        case registered
        /// Another token, or another owner, took its place.
        case replaced
        case signedOut = "signed-out"
        /// A provider's word ended it.
        case deactivated
        /// It ended here, since it lives in the other environment, where it is `registered`.
        case corrected
        /// Not seen for a month, and still sent to; or, `active` no more, for so long that its provider has forgotten it.
        case stale
        /// Its user has more devices than are kept.
        case evicted
        case erased
        /// The user asked to be forgotten: everything that is kept about them is to go.
        case userErased = "user-erased"
    }

    /// The registration, without its token.
    package struct Device: Codable, Hashable, Sendable {
        package var id: UUID
        package var provider: Provider
        package var environment: ProviderEnvironment
        package var kind: RegistrationKind
        package var installation: InstallationID?
        /// Whether pushes go to it for this user after what happened.
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

    /// The routing key, `event.<past>`.
    package var routingKey: String { Self.routingKey(past) }

    package static func routingKey(_ past: Past) -> String { "event.\(past.rawValue)" }
}
