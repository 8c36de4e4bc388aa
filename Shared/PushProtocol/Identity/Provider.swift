/// A push provider: Apple Push Notification service, Firebase Cloud Messaging, or the push services of browsers.
package enum Provider: String, Codable, Sendable, CaseIterable, Comparable {
    case apns
    case fcm
    /// Web Push (RFC 8030): each subscription names its own push service.
    case webpush

    /// Whether the provider has `production` only.
    package var hasOneEnvironment: Bool {
        switch self {
        case .apns: false
        case .fcm, .webpush: true
        }
    }

    package static func < (a: Provider, b: Provider) -> Bool { a.rawValue < b.rawValue }
}

/// A provider's environment. APNs calls `development` *sandbox*; it rejects a token of the other environment. FCM and
/// Web Push have `production` only.
package enum ProviderEnvironment: String, Codable, Sendable, CaseIterable, Comparable {
    case production
    case development

    /// Parses a client's name: `production`, `development`, or `sandbox` for the latter.
    package init?(clientName: String) {
        switch clientName {
        case "production": self = .production
        case "development", "sandbox": self = .development
        default: return nil
        }
    }

    package static func < (a: ProviderEnvironment, b: ProviderEnvironment) -> Bool { a.rawValue < b.rawValue }
}

/// The priority of a message: `interactive` and `bulk` have separate queues and reserved capacity at every stage.
package enum Lane: String, Codable, Sendable, CaseIterable, Comparable {
    case interactive
    case bulk

    package static func < (a: Lane, b: Lane) -> Bool { a == .interactive && b == .bulk }
}
