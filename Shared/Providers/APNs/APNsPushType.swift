/// The values of `apns-push-type` and their requirements (ProviderFacts.md §A.5, §A.6).
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

    /// The suffix of the bundle id in `apns-topic`; `nil` where the topic is not derived from a bundle id.
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

    /// The maximum body size, in bytes.
    var maximumPayload: Int {
        switch self {
        case .voip: 5120
        case .alert, .background, .complication, .fileProvider, .mdm, .liveActivity, .location, .pushToTalk, .widgets,
            .controls:
            4096
        }
    }

    /// The default `apns-priority`; `nil` leaves it to APNs.
    var defaultPriority: APNsPriority? {
        switch self {
        case .alert, .voip, .liveActivity, .location, .pushToTalk, .controls: .now
        case .background: .powerAware
        case .complication, .fileProvider, .mdm, .widgets: nil
        }
    }

    /// Whether APNs accepts `priority` for this type. Background pushes require 5; Live Activities accept 5 and 10.
    func allows(_ priority: APNsPriority) -> Bool {
        switch self {
        case .background: priority == .powerAware
        case .liveActivity: priority != .powerFirst
        case .alert, .voip, .complication, .fileProvider, .mdm, .location, .pushToTalk, .widgets, .controls: true
        }
    }

    /// Whether the default expiration is 0. A stored call would arrive too late.
    var isNeverStored: Bool { self == .voip || self == .pushToTalk }

    /// Whether APNs accepts the type with certificate authentication.
    var allowsCertificate: Bool { self != .location }

    /// Whether the notification id is the default collapse id, so that a duplicate replaces the first on screen.
    var isCollapsedByDefault: Bool { self == .alert || self == .background }
}

/// The values of `apns-priority`.
enum APNsPriority: String, CaseIterable, Sendable {
    case now = "10"
    case powerAware = "5"
    /// Prioritizes power; never wakes the device.
    case powerFirst = "1"
}
