/// Who delivers: Apple Push Notification service or Firebase Cloud Messaging.
package enum Provider: String, Codable, Sendable, CaseIterable, Comparable {
    case apns
    case fcm

    package static func < (a: Provider, b: Provider) -> Bool { a.rawValue < b.rawValue }
}

/// Which of a provider's worlds a registration lives in. APNs calls `development` *sandbox*; a token of one world is
/// unknown in the other. FCM has one world, `production`.
package enum ProviderEnvironment: String, Codable, Sendable, CaseIterable, Comparable {
    case production
    case development

    /// Reads the names that clients use: `production`, `development`, and `sandbox` for the latter.
    package init?(clientName: String) {
        switch clientName {
        case "production": self = .production
        case "development", "sandbox": self = .development
        default: return nil
        }
    }

    package static func < (a: ProviderEnvironment, b: ProviderEnvironment) -> Bool { a.rawValue < b.rawValue }
}

/// Separate queues with separate reserved capacity at every stage, so that a broadcast never delays a chat message.
package enum Lane: String, Codable, Sendable, CaseIterable, Comparable {
    case interactive
    case bulk

    package static func < (a: Lane, b: Lane) -> Bool { a == .interactive && b == .bulk }
}
