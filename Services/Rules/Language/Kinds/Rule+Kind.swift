package import PushProtocol

extension Rule.DeliveryOptions {
    /// The kind of push.
    ///
    /// All kinds after `badgeOnly` need a separate device token, which exists only on Apple's devices
    /// (`Shared/Providers/ProviderFacts.md`, A.5).
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case alert
        /// Wakes the app and shows nothing.
        case silent
        /// Changes only the app's badge.
        case badgeOnly = "badge-only"
        /// Rings for a call.
        case voip
        /// Announces a speaker in a Push to Talk channel.
        case pushToTalk = "push-to-talk"
        /// Starts, updates or ends a Live Activity.
        case liveActivity = "live-activity"
        /// Requests the device's location.
        case location
        case complication
        case fileProvider = "file-provider"
        case mdm
        case widgets
        case controls
    }
}

extension Rule.DeliveryOptions.Kind {
    /// The `apns-push-type`; `nil`: it depends on the content.
    var pushType: String? {
        switch self {
        case .alert, .silent, .badgeOnly: nil
        case .voip: "voip"
        case .pushToTalk: "pushtotalk"
        case .liveActivity: "liveactivity"
        case .location: "location"
        case .complication: "complication"
        case .fileProvider: "fileprovider"
        case .mdm: "mdm"
        case .widgets: "widgets"
        case .controls: "controls"
        }
    }

    /// Whether only the app sees the push: it has data and no text.
    var isData: Bool {
        switch self {
        case .silent, .voip, .pushToTalk, .location, .complication: true
        case .alert, .badgeOnly, .liveActivity, .fileProvider, .mdm, .widgets, .controls: false
        }
    }

    /// Whether the payload can have members of the app beside `aps`.
    var hasPayload: Bool {
        switch self {
        case .voip, .pushToTalk, .location, .complication, .fileProvider, .mdm: true
        case .alert, .silent, .badgeOnly, .liveActivity, .widgets, .controls: false
        }
    }

    /// Whether a delay makes the push useless, so FCM needs high priority too.
    var isUrgent: Bool {
        switch self {
        case .voip, .pushToTalk: true
        case .alert, .silent, .badgeOnly, .liveActivity, .location, .complication, .fileProvider, .mdm, .widgets,
            .controls:
            false
        }
    }
}

/// Whether users notice the pushes of a rule.
enum Visibility: Sendable {
    /// Users notice it. It can be held, and the inbox can keep it.
    case alert
    /// Users notice it, but it cannot be delayed. It is not held, and the inbox does not keep it.
    case momentary
    /// Users do not notice it. Their settings do not apply.
    case none
}

extension Rule {
    /// The part of a rule of an entry under `live`.
    enum Surface: Hashable, Sendable {
        /// It shows the surface. Users notice it.
        case started
        /// It shows a new state. Of the platforms without Live Activities, users notice it.
        case shown
        /// It removes the surface, whatever the user's settings.
        case removed
    }

    /// The update or end of a Live Activity is not noticed, because the activity is already on the screen.
    var visibility: Visibility {
        switch how.kind {
        case .alert: .alert
        case .voip, .pushToTalk: .momentary
        case .liveActivity: say.activity?.event == .start ? .momentary : .none
        case .silent: surface == .started || surface == .shown ? .momentary : .none
        case .badgeOnly, .location, .complication, .fileProvider, .mdm, .widgets, .controls: .none
        }
    }

    /// Whether users notice the push, so that their settings apply.
    package var isUserVisible: Bool { visibility != .none }

    /// Renders the scope of the tokens to push to; `nil` if the rule has none.
    func tokenScope(_ scope: Scope) throws(PlacedProblem) -> String? {
        try how.scope?.tokenScope(scope, place: "how.scope")
    }
}

extension Template {
    /// Renders the scope of a registration.
    func tokenScope(_ scope: Scope, place: String) throws(PlacedProblem) -> String {
        try render(
            scope, place: place, "the scope", expected: "a scope of 1 to \(Notification.maximumScope) characters"
        ) { name in (1...Notification.maximumScope).contains(name.count) ? name : nil }
    }
}

extension DataTemplate {
    /// Renders a template whose result must be an object.
    package func object(_ scope: Scope, _ place: String) throws(PlacedProblem) -> JSONValue {
        let value = try render(scope, place: place) ?? .null
        guard case .object = value else {
            throw PlacedProblem(place, .unsuitable(path: tags.first?.path ?? "it", expected: "an object"))
        }
        return value
    }
}
