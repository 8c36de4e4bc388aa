import FoundationEssentials
import PushProtocol

/// What can be done with an app's APNs broadcast channels, as requests and answers (`push-protocols` A.11).
enum ChannelOperation: Hashable, Sendable {
    case create(Storage)
    case read(channel: String)
    case delete(channel: String)
    case list

    /// What APNs keeps for a device that is away.
    enum Storage: String, CaseIterable, Sendable {
        case none
        /// The most recent message, for at most eight hours.
        case mostRecent = "most-recent"

        fileprivate var policy: Int64 {
            switch self {
            case .none: 0
            case .mostRecent: 1
            }
        }
    }

    var method: String {
        switch self {
        case .create: "POST"
        case .read, .list: "GET"
        case .delete: "DELETE"
        }
    }

    func path(bundle: String) -> String {
        switch self {
        case .create, .read, .delete: "/1/apps/\(bundle)/channels"
        case .list: "/1/apps/\(bundle)/all-channels"
        }
    }

    /// The channel stands in a header, not in the path.
    var headers: [(name: String, value: String)] {
        switch self {
        case .read(let channel), .delete(let channel): [("apns-channel-id", channel)]
        case .create, .list: []
        }
    }

    func body() throws(WireError) -> [UInt8] {
        guard case .create(let storage) = self else { return [] }
        let body: JSONValue = ["message-storage-policy": .int(storage.policy), "push-type": "LiveActivity"]
        return try WireCoding.encode(body)
    }

    /// The lines to print for a success, or why there is none.
    func lines(status: Int, channel: String?, body: [UInt8]) throws(Refusal) -> [String] {
        let json = body.isEmpty ? nil : try? WireCoding.decode(JSONValue.self, from: body)
        switch (self, status) {
        case (.create, 201):
            guard let channel, !channel.isEmpty else { throw Refusal("APNs made a channel and did not say which") }
            return [channel]
        case (.read(let channel), 200):
            let policy = json?["message-storage-policy"]?.int
            let storage = Storage.allCases.first { $0.policy == policy }?.rawValue ?? "unknown"
            return ["\(channel)  storage: \(storage)  push type: \(json?["push-type"]?.string ?? "unknown")"]
        case (.delete(let channel), 204): return ["deleted \(channel)"]
        case (.list, 200):
            guard let channels = json?["channels"]?.array else { throw Refusal("APNs answered without a list") }
            return channels.map { $0.string ?? "\($0)" }
        default: throw Refusal(Self.problem(status: status, reason: json?["reason"]?.string))
        }
    }

    private static func problem(status: Int, reason: String?) -> String {
        let hint: String? =
            switch reason {
            case "FeatureNotEnabled": "enable the broadcast capability of this bundle id in the developer account"
            case "TopicMismatch": "the signing key is not for this bundle id"
            case "CannotCreateChannelConfig":
                "an app has at most 10,000 channels in an environment; delete those that ended"
            case "ChannelNotRegistered", "BadChannelId": "no such channel in this environment; ids are not shared"
            case "InvalidProviderToken", "BadEnvironmentKeyInToken", "BadEnvironmentKeyIdInToken":
                "check key-id, team-id, key-file and the key's environment in the apps file"
            default: nil
            }
        return "APNs answered \(status): \(reason ?? "no reason")" + (hint.map { "; \($0)" } ?? "")
    }
}
