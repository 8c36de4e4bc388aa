import PushProtocol

/// A service with an operator API and its own API keys.
enum APIKeyService: String, CaseIterable, Sendable {
    case registry
    case rules

    /// The schema with its table `api_key`.
    var schema: String { rawValue }

    /// The operations that its keys may allow.
    var operations: [APIKey.Operation] {
        switch self {
        case .registry:
            [.readDevices, .registerDevices, .deactivateDevices, .eraseUsers, .readCounts, .sendNotifications]
        case .rules:
            [
                .readEvents, .readCounts, .readPreferences, .writePreferences, .publishEvents, .sendNotifications,
                .revokeNotifications,
            ]
        }
    }
}
