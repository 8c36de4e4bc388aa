/// The values of `apns-push-type`, and what each demands of the rest of the request (`push-protocols` A.5, A.6).
enum APNsPushType: String, CaseIterable, Sendable {
    case alert
    case background
    case voip
    case complication
    case fileProvider = "fileprovider"
    case mdm
    case liveActivity = "liveactivity"
    case location
    case pushToTalk = "pushtotalk"
    case widgets
    case controls

    /// What follows the bundle id in `apns-topic`; `nil` where the topic is no bundle id at all.
    var topicSuffix: String? {
        switch self {
        case .alert, .background: ""
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileProvider: ".pushkit.fileprovider"
        case .mdm: nil
        case .liveActivity: ".push-type.liveactivity"
        case .location: ".location-query"
        case .pushToTalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        }
    }

    /// The most bytes a body may have.
    var maximumPayload: Int {
        switch self {
        case .voip: 5120
        case .alert, .background, .complication, .fileProvider, .mdm, .liveActivity, .location, .pushToTalk, .widgets,
            .controls:
            4096
        }
    }

    /// What `apns-priority` is when nobody says; `nil` leaves it to APNs.
    var usualPriority: APNsPriority? {
        switch self {
        case .alert, .voip, .liveActivity, .location, .pushToTalk, .controls: .now
        case .background: .powerAware
        case .complication, .fileProvider, .mdm, .widgets: nil
        }
    }

    /// Whether APNs takes `priority` with it: a background push that claims to be urgent is an error, and a Live Activity
    /// knows two.
    func allows(_ priority: APNsPriority) -> Bool {
        switch self {
        case .background: priority == .powerAware
        case .liveActivity: priority != .powerFirst
        case .alert, .voip, .complication, .fileProvider, .mdm, .location, .pushToTalk, .widgets, .controls: true
        }
    }

    /// Calls are worth something now or never: without a date of their own they are not stored.
    var isMomentary: Bool { self == .voip || self == .pushToTalk }

    /// Whether APNs takes it from a client that proves itself by a certificate.
    var allowsCertificate: Bool { self != .location }

    /// Whether a repeat of it would be seen by a person, so that the notification id is its collapse id.
    var isCollapsedByDefault: Bool { self == .alert || self == .background }
}

/// The values of `apns-priority`.
enum APNsPriority: String, CaseIterable, Sendable {
    case now = "10"
    case powerAware = "5"
    /// Power above all; never wakes the device.
    case powerFirst = "1"
}
