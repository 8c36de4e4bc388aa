import FoundationEssentials
import PushProtocol

/// Channel management and broadcasts: `/1/apps/<bundle>/channels`, `/1/apps/<bundle>/all-channels` and
/// `/4/broadcasts/apps/<bundle>` (push-protocols A.11). Apple has management on hosts of its own; here it is on the port
/// of the environment.
struct APNsChannelDesk: Sendable {
    enum Operation: Hashable, Sendable {
        case channels(String)
        case allChannels(String)
        case broadcast(String)

        var bundle: String {
            switch self {
            case .channels(let bundle), .allChannels(let bundle), .broadcast(let bundle): bundle
            }
        }

        /// `nil` for any other path.
        init?(_ path: String) {
            let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
            switch parts.count {
            case 5 where parts[1] == "1" && parts[2] == "apps" && parts[4] == "channels": self = .channels(parts[3])
            case 5 where parts[1] == "1" && parts[2] == "apps" && parts[4] == "all-channels":
                self = .allChannels(parts[3])
            case 5 where parts[1] == "4" && parts[2] == "broadcasts" && parts[3] == "apps":
                self = .broadcast(parts[4])
            default: return nil
            }
        }
    }

    /// What went well: its status, what is said of the channel, and the body.
    struct Success: Sendable {
        var status: Int
        var channel: String?
        var body: [UInt8] = []
    }

    /// In bytes.
    static let maximumBroadcastSize = 5120

    let channels: APNsChannels

    /// Does what is asked, by a key that may.
    func perform(_ operation: Operation, _ request: ProviderRequest, key: APNsKey) throws(APNsChannelRefusal) -> Success
    {
        guard key.topics.contains(operation.bundle) else {
            throw APNsChannelRefusal(403, "TopicMismatch", "the key may not speak for “\(operation.bundle)”")
        }
        switch (operation, request.method) {
        case (.channels(let bundle), "POST"): return try create(request, for: bundle)
        case (.channels(let bundle), "GET"):
            let (id, policy) = try channel(of: request, for: bundle)
            return Success(
                status: 200, channel: id,
                body: JSONWriter.object { writer in
                    writer.member("message-storage-policy", policy.rawValue)
                    writer.member("push-type", "LiveActivity")
                })
        case (.channels(let bundle), "DELETE"):
            let (id, _) = try channel(of: request, for: bundle)
            _ = channels.delete(id, for: bundle)
            return Success(status: 204)
        case (.allChannels(let bundle), "GET"):
            let all = channels.all(of: bundle)
            return Success(
                status: 200,
                body: JSONWriter.object { writer in
                    writer.name("channels")
                    writer.array(all) { $0.string($1) }
                })
        case (.broadcast(let bundle), "POST"): return try broadcast(request, for: bundle)
        case (.channels, _), (.allChannels, _), (.broadcast, _):
            throw APNsChannelRefusal(405, "MethodNotAllowed", "\(request.method) is not for this path")
        }
    }

    private func create(_ request: ProviderRequest, for bundle: String) throws(APNsChannelRefusal) -> Success {
        guard let body = (try? JSONReader.value(of: request.body))?.object else {
            throw APNsChannelRefusal(400, "BadRequestPayload", "the body is not a JSON object")
        }
        guard let type = body["push-type"]?.string else {
            throw APNsChannelRefusal(400, "MissingPushType", "push-type is missing")
        }
        guard type == "LiveActivity" else {
            throw APNsChannelRefusal(400, "InvalidPushType", "push-type is not LiveActivity")
        }
        guard let policy = body["message-storage-policy"]?.int.flatMap(APNsChannels.StoragePolicy.init) else {
            throw APNsChannelRefusal(400, "BadRequestPayload", "message-storage-policy is not 0 or 1")
        }
        guard let id = channels.create(policy, for: bundle) else {
            throw APNsChannelRefusal(
                400, "CannotCreateChannelConfig", "the app has \(APNsChannels.maximumChannels) channels")
        }
        return Success(status: 201, channel: id)
    }

    private func channel(
        of request: ProviderRequest, for bundle: String
    ) throws(APNsChannelRefusal) -> (id: String, policy: APNsChannels.StoragePolicy) {
        guard let id = request["apns-channel-id"], !id.isEmpty else {
            throw APNsChannelRefusal(400, "MissingChannelId", "there is no apns-channel-id")
        }
        guard Base64.isText(id) else { throw APNsChannelRefusal(400, "BadChannelId", "the channel id is not base64") }
        guard let policy = channels.policy(of: id, for: bundle) else {
            throw APNsChannelRefusal(400, "ChannelNotRegistered", "the app has no such channel")
        }
        return (id, policy)
    }

    private func broadcast(_ request: ProviderRequest, for bundle: String) throws(APNsChannelRefusal) -> Success {
        guard let type = request["apns-push-type"] else {
            throw APNsChannelRefusal(400, "MissingPushType", "there is no apns-push-type")
        }
        // Apple's table and its samples differ in case (A.11).
        guard type.lowercased() == "liveactivity" else {
            throw APNsChannelRefusal(400, "InvalidPushType", "a broadcast is of type liveactivity")
        }
        guard let expiration = request["apns-expiration"].flatMap({ Int64($0) }), expiration >= 0 else {
            throw APNsChannelRefusal(400, "BadExpirationDate", "apns-expiration is not a count of Unix seconds")
        }
        guard ["1", "5", "10"].contains(request["apns-priority"] ?? "") else {
            throw APNsChannelRefusal(400, "BadPriority", "apns-priority is not 10, 5 or 1")
        }
        let (id, policy) = try channel(of: request, for: bundle)
        if policy == .none, expiration != 0 {
            throw APNsChannelRefusal(
                400, "BadExpirationDate", "the channel stores nothing, so nothing can expire later")
        }
        guard !request.body.isEmpty else { throw APNsChannelRefusal(400, "PayloadEmpty", "the body is empty") }
        guard request.body.count <= Self.maximumBroadcastSize else {
            throw APNsChannelRefusal(413, "PayloadTooLarge", "the body has \(request.body.count) bytes")
        }
        guard let payload = (try? JSONReader.value(of: request.body))?.object else {
            throw APNsChannelRefusal(400, "BadRequestPayload", "the body is not a JSON object")
        }
        if let problem = APNsPayload.problem(of: payload, for: .liveactivity) {
            throw APNsChannelRefusal(400, "BadRequestPayload", problem)
        }
        guard payload["aps"]?["event"]?.string != "start" else {
            throw APNsChannelRefusal(400, "BadRequestPayload", "a broadcast cannot start a Live Activity")
        }
        return Success(status: 200, channel: id)
    }
}

/// Why a channel request is refused: some of its reasons are no device push's.
struct APNsChannelRefusal: Error, Hashable, Sendable {
    let status: Int
    let reason: String
    let detail: String

    init(_ status: Int, _ reason: String, _ detail: String) {
        self.status = status
        self.reason = reason
        self.detail = detail
    }
}
