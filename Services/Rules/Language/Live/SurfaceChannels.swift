package import PushProtocol

/// The use of broadcast channels by a rule of an entry under `live`. A channel belongs to one item in one environment.
/// All phones that start the surface with it get its states.
package struct SurfaceChannels<Item: Hashable & Sendable>: Hashable, Sendable {
    /// The item of the surface (``LiveItem``).
    package var item: Item
    package var role: SurfaceChannelRole

    package init(item: Item, role: SurfaceChannelRole) {
        self.item = item
        self.role = role
    }
}

/// The part that a rule has in the use of channels.
package enum SurfaceChannelRole: Hashable, Sendable {
    /// Its phones start the surface with the channels. With more recipients than `above`, it opens them.
    case opens(above: Int, environments: Set<ProviderEnvironment>, endsAfter: Duration)
    /// It sends a state to the channels.
    case updates
    /// It ends the surface of the channels.
    case ends
    /// It ends the surface of the channels after this time, unless a later event of the rule postpones that.
    case endsLater(Duration)

    /// How long APNs keeps the newest message of a channel for phones that are offline (`ProviderFacts.md`, §A.11).
    package static let storage = Duration.seconds(8 * 3600)

    /// Whether the channels are the recipients, in place of users.
    package var isBroadcast: Bool {
        switch self {
        case .opens: false
        case .updates, .ends, .endsLater: true
        }
    }
}
