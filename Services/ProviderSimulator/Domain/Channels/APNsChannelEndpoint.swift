import FoundationEssentials
import PushProtocol

/// Channel management and broadcasts: `/1/apps/<bundle>/channels`, `/1/apps/<bundle>/all-channels` and
/// `/4/broadcasts/apps/<bundle>`. Apple serves management on separate hosts; the simulator serves it on the
/// environment's port (ProviderFacts.md §A.11).
struct APNsChannelEndpoint: Sendable {
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

    /// A successful response: status, channel id and body.
    struct Success: Sendable {
        var status: Int
        var channel: String?
        /// Whether it is a broadcast that ends Live Activities.
        var isEnd = false
        var body: [UInt8] = []
    }

    /// In bytes.
    static let maximumBroadcastSize = 5120

    let channels: APNsChannels

    /// Performs the operation, if the key's topics include the bundle.
    func perform(_ operation: Operation, _ request: ProviderRequest, key: APNsKey) throws(APNsChannelRejection)
        -> Success
    {
        guard key.topics.contains(operation.bundle) else {
            throw APNsChannelRejection(403, "TopicMismatch", "the key is not for the bundle id “\(operation.bundle)”")
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
            throw APNsChannelRejection(405, "MethodNotAllowed", "\(request.method) is not allowed on this path")
        }
    }

    private func create(_ request: ProviderRequest, for bundle: String) throws(APNsChannelRejection) -> Success {
        guard let body = (try? ProviderJSON.value(of: request.body))?.object else {
            throw APNsChannelRejection(400, "BadRequestPayload", "the body is not a JSON object")
        }
        guard let type = body["push-type"]?.string else {
            throw APNsChannelRejection(400, "MissingPushType", "push-type is missing")
        }
        guard type == "LiveActivity" else {
            throw APNsChannelRejection(400, "InvalidPushType", "push-type is not LiveActivity")
        }
        guard let policy = body["message-storage-policy"]?.int.flatMap(APNsChannels.StoragePolicy.init) else {
            throw APNsChannelRejection(400, "BadRequestPayload", "message-storage-policy is not 0 or 1")
        }
        guard let id = channels.create(policy, for: bundle) else {
            throw APNsChannelRejection(
                400, "CannotCreateChannelConfig", "the app has \(APNsChannels.maximumChannels) channels")
        }
        return Success(status: 201, channel: id)
    }

    private func channel(
        of request: ProviderRequest, for bundle: String
    ) throws(APNsChannelRejection) -> (id: String, policy: APNsChannels.StoragePolicy) {
        guard let id = request["apns-channel-id"], !id.isEmpty else {
            throw APNsChannelRejection(400, "MissingChannelId", "there is no apns-channel-id")
        }
        guard Base64.isText(id) else { throw APNsChannelRejection(400, "BadChannelId", "the channel id is not base64") }
        guard let policy = channels.policy(of: id, for: bundle) else {
            throw APNsChannelRejection(400, "ChannelNotRegistered", "the app has no such channel")
        }
        return (id, policy)
    }

    private func broadcast(_ request: ProviderRequest, for bundle: String) throws(APNsChannelRejection) -> Success {
        guard let type = request["apns-push-type"] else {
            throw APNsChannelRejection(400, "MissingPushType", "there is no apns-push-type")
        }
        // Apple's table and its examples differ in case.
        guard type.lowercased() == "liveactivity" else {
            throw APNsChannelRejection(400, "InvalidPushType", "a broadcast is of type liveactivity")
        }
        guard let expiration = request["apns-expiration"].flatMap({ Int64($0) }), expiration >= 0 else {
            throw APNsChannelRejection(400, "BadExpirationDate", "apns-expiration is not a count of Unix seconds")
        }
        guard ["1", "5", "10"].contains(request["apns-priority"] ?? "") else {
            throw APNsChannelRejection(400, "BadPriority", "apns-priority is not 10, 5 or 1")
        }
        let (id, policy) = try channel(of: request, for: bundle)
        if policy == .none, expiration != 0 {
            throw APNsChannelRejection(
                400, "BadExpirationDate", "a channel without storage needs apns-expiration 0")
        }
        guard !request.body.isEmpty else { throw APNsChannelRejection(400, "PayloadEmpty", "the body is empty") }
        guard request.body.count <= Self.maximumBroadcastSize else {
            throw APNsChannelRejection(413, "PayloadTooLarge", "the body has \(request.body.count) bytes")
        }
        guard let payload = (try? ProviderJSON.value(of: request.body))?.object else {
            throw APNsChannelRejection(400, "BadRequestPayload", "the body is not a JSON object")
        }
        if let problem = APNsPayload.problem(of: payload, for: .liveactivity) {
            throw APNsChannelRejection(400, "BadRequestPayload", problem)
        }
        guard payload["aps"]?["event"]?.string != "start" else {
            throw APNsChannelRejection(400, "BadRequestPayload", "a broadcast cannot start a Live Activity")
        }
        return Success(status: 200, channel: id, isEnd: payload["aps"]?["event"]?.string == "end")
    }
}

/// The rejection of a channel request. Its reasons include some that device pushes do not have.
struct APNsChannelRejection: Error, Hashable, Sendable {
    let status: Int
    let reason: String
    let detail: String

    init(_ status: Int, _ reason: String, _ detail: String) {
        self.status = status
        self.reason = reason
        self.detail = detail
    }
}
