import PushProtocol

/// A service with an operator API, which has keys of its own in its own schema.
enum KeyedService: String, CaseIterable, Sendable {
    case registry
    case rules

    /// Where its keys are, in the table `api_key`.
    var schema: String { rawValue }

    /// What its keys may be used for.
    var operations: [APIKey.Operation] {
        switch self {
        case .registry: [.readDevices, .registerDevices, .deactivateDevices, .eraseUsers, .readCounts]
        case .rules: [.readEvents, .readCounts]
        }
    }
}
