import Providers
import PushProtocol

extension ChannelOperation {
    struct Result: Hashable, Sendable {
        var lines: [String]
        var json: JSONValue
    }

    /// The result of a successful response. Throws for others.
    func result(status: Int, channel: String?, body: [UInt8]) throws(CommandError) -> Result {
        let json = body.isEmpty ? nil : try? WireCoding.decode(JSONValue.self, from: body)
        switch (self, status) {
        case (.create, 201):
            guard let channel, !channel.isEmpty else {
                throw CommandError("APNs created a channel but returned no id", .unexpected)
            }
            return Result(lines: [channel], json: ["channel": .string(channel)])
        case (.read(let channel), 200):
            let policy = json?["message-storage-policy"]?.int
            let storage = Storage.allCases.first { $0.policy == policy }?.rawValue ?? "unknown"
            let type = json?["push-type"]?.string ?? "unknown"
            return Result(
                lines: ["\(channel)  storage: \(storage)  push type: \(type)"],
                json: ["channel": .string(channel), "storage": .string(storage), "push_type": .string(type)])
        case (.delete(let channel), 204):
            return Result(lines: ["deleted \(channel)"], json: ["deleted": .string(channel)])
        case (.list, 200):
            guard let channels = json?["channels"]?.array else {
                throw CommandError("the APNs response has no list", .unexpected)
            }
            return Result(lines: channels.map { $0.string ?? "\($0)" }, json: ["channels": .array(channels)])
        default:
            let reason = json?["reason"]?.string
            throw CommandError(Self.problem(status: status, reason: reason), Self.exitStatus(status, reason))
        }
    }

    private static func exitStatus(_ status: Int, _ reason: String?) -> CommandStatus {
        switch (status, reason) {
        case (404, _), (_, "ChannelNotRegistered"), (_, "BadChannelId"): .notFound
        case (401, _), (403, _): .permission
        case (429, _): .temporary
        case (500..., _): .unavailable
        default: .findings
        }
    }

    private static func problem(status: Int, reason: String?) -> String {
        let hint: String? =
            switch reason {
            case "FeatureNotEnabled": "enable the broadcast capability of this bundle id in the developer account"
            case "TopicMismatch": "the signing key is not for this bundle id"
            case "CannotCreateChannelConfig":
                "an app may have 10,000 channels in an environment; delete unused ones"
            case "ChannelNotRegistered", "BadChannelId":
                "no such channel in this environment; each environment has its own ids"
            case "InvalidProviderToken", "BadEnvironmentKeyInToken", "BadEnvironmentKeyIdInToken":
                "check key-id, team-id, key-file and the key's environment in the apps file"
            default: nil
            }
        return "APNs answered \(status): \(reason ?? "no reason")" + (hint.map { "; \($0)" } ?? "")
    }
}
