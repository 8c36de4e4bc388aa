import PushProtocol

extension Rule.DeliveryOptions {
    /// What it is to the device. All but the first three are for a token of their own, which only Apple's devices have
    /// (`push-protocols` A.5).
    enum Kind: String, Hashable, Sendable, CaseIterable {
        case alert
        /// Wakes the app and shows nothing.
        case silent
        /// Changes the number on the app's icon, and nothing else.
        case badgeOnly = "badge-only"
        /// A call rings.
        case voip
        /// Somebody speaks in a channel that was joined.
        case pushToTalk = "push-to-talk"
        /// A Live Activity starts, changes or ends.
        case liveActivity = "live-activity"
        /// The app is asked where it is.
        case location
        case complication
        case fileProvider = "file-provider"
        case mdm
        case widgets
        case controls
    }
}

extension Rule.DeliveryOptions.Kind {
    /// The `apns-push-type`; `nil` where it follows from what is said.
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

    /// Whether the app alone sees it: it has data, and no words.
    var isData: Bool {
        switch self {
        case .silent, .voip, .pushToTalk, .location, .complication: true
        case .alert, .badgeOnly, .liveActivity, .fileProvider, .mdm, .widgets, .controls: false
        }
    }

    /// Whether its payload has room beside `aps` for what an app has agreed on with its devices.
    var hasPayload: Bool {
        switch self {
        case .voip, .pushToTalk, .location, .complication, .fileProvider, .mdm: true
        case .alert, .silent, .badgeOnly, .liveActivity, .widgets, .controls: false
        }
    }

    /// Whether it is for a moment, in which other phones are not to be late either.
    var isUrgent: Bool {
        switch self {
        case .voip, .pushToTalk: true
        case .alert, .silent, .badgeOnly, .liveActivity, .location, .complication, .fileProvider, .mdm, .widgets,
            .controls:
            false
        }
    }
}

/// How much a person notices of what a rule says.
enum Visibility: Sendable {
    /// It may wait, and is found in the inbox.
    case alert
    /// Now or never: what the person does not want is not kept, and it is not held.
    case momentary
    /// Nobody is asked.
    case none
}

extension Rule {
    /// The update of a Live Activity is of something that is on the screen already.
    var visibility: Visibility {
        switch how.kind {
        case .alert: .alert
        case .voip, .pushToTalk: .momentary
        case .liveActivity: say.activity?.event == .start ? .momentary : .none
        case .silent, .badgeOnly, .location, .complication, .fileProvider, .mdm, .widgets, .controls: .none
        }
    }

    /// What is laid over the sender's rendering: what the kind asks for and, over it, the rule's own.
    func apns(_ scope: Scope) throws(PlacedProblem) -> APNsOverride? {
        guard let pushType = how.kind.pushType else { return how.apns }
        var headers = how.apns?.headers ?? [:]
        headers["apns-push-type"] = pushType
        var payload = try say.payload.map(DataTemplate.object)?.object(scope, "say.payload") ?? [:]
        if let activity = say.activity {
            payload = .object(["aps": .object(try activity.render(scope, sound: how.sound))])
        }
        if how.kind == .widgets || how.kind == .controls { payload = ["aps": ["content-changed": true]] }
        if let own = how.apns?.payload { payload = payload.merging(own) }
        return APNsOverride(headers: headers, payload: payload == [:] ? Optional.none : payload)
    }

    /// Phones that have no such tokens hear of a call as soon as the others.
    var fcm: FCMOverride? {
        guard how.kind.isUrgent else { return how.fcm }
        let urgent: JSONValue = ["android": ["priority": "HIGH"]]
        return FCMOverride(
            message: how.fcm?.message.map(urgent.merging) ?? urgent, validateOnly: how.fcm?.validateOnly)
    }

    /// Which of a person's tokens of this kind are meant.
    func tokenScope(_ scope: Scope) throws(PlacedProblem) -> String? {
        guard let template = how.scope else { return nil }
        return try template.render(
            scope, place: "how.scope", "the scope",
            expected: "a scope of 1 to \(Notification.maximumScope) characters"
        ) { name in (1...Notification.maximumScope).contains(name.count) ? name : nil }
    }
}

extension DataTemplate {
    /// What must be an object, for one event.
    func object(_ scope: Scope, _ place: String) throws(PlacedProblem) -> JSONValue {
        let value = try render(scope, place: place) ?? .null
        guard case .object = value else {
            throw PlacedProblem(place, .unsuitable(path: tags.first?.path ?? "it", expected: "an object"))
        }
        return value
    }
}
