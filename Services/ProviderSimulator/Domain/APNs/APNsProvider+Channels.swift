import FoundationEssentials
import PushProtocol

extension APNsProvider {
    /// Responds to a channel or broadcast request; `nil` for any other path.
    func respondToChannelRequest(_ request: ProviderRequest, on connection: APNsConnection) -> SimulatedResponse? {
        guard let operation = APNsChannelEndpoint.Operation(request.path) else { return nil }
        let given = request["apns-request-id"]
        let id = given.flatMap { APNsRequestValidator.isCanonicalUUID($0) ? $0 : nil } ?? UUID().uuidString
        var response = SimulatedResponse(actions: [], app: operation.bundle, messageID: id)
        do throws(APNsChannelRejection) {
            let key = try authorize(request, on: connection)
            let success = try channelEndpoint.perform(operation, request, key: key)
            let scripted: ScriptedOutcome? =
                if case .broadcast = operation {
                    state.outcomes.take(.apns, token: success.channel?.lowercased(), app: operation.bundle)
                } else {
                    nil
                }
            if let scripted, scripted.answer?.status != 200 || scripted.label != nil {
                play(scripted, into: &response, connection, at: request.receivedAt)
                return response
            }
            response.isDelivered = operation == .broadcast(operation.bundle)
            if response.isDelivered, let channel = success.channel {
                let followers = channelEndpoint.channels.followers(of: channel, isEnd: success.isEnd)
                response.subscribers = Array(followers.prefix(PhoneWall.maximumPhones))
            }
            response.actions = [.respond(Self.reply(success, id), bodyAfter: .zero)]
            if connection.isFirstSuccess() { response.actions.insert(.limitStreams(state.apnsStreams), at: 0) }
        } catch {
            response.reason = error.reason
            response.detail = error.detail
            var reply = Reply(status: error.status, headers: [Header("apns-request-id", id)])
            reply.headers.append(Header("content-type", "application/json"))
            reply.body = JSONWriter.object { $0.member("reason", error.reason) }
            response.actions = [.respond(reply, bodyAfter: .zero)]
        }
        return response
    }

    /// Notes the channel that the start of a Live Activity names.
    func noteFollower(_ push: APNsPush, _ token: String?, _ bundle: String?) {
        guard push.pushType == "liveactivity", let token, let bundle,
            let body = try? ProviderJSON.value(of: push.request.body),
            let channel = body["aps"]?["input-push-channel"]?.string
        else { return }
        channelEndpoint.channels.follow(channel, by: token, for: bundle)
    }

    private func authorize(
        _ request: ProviderRequest, on connection: APNsConnection
    ) throws(APNsChannelRejection) -> APNsKey {
        guard let authorization = request["authorization"] else {
            throw APNsChannelRejection(403, "MissingProviderToken", "there is no authorization header")
        }
        do throws(APNsRejection) {
            return try connection.admit(
                authorization, apps: state.apps, environment: environment, now: request.receivedAt)
        } catch {
            throw APNsChannelRejection(error.reason.status, error.reason.rawValue, error.detail)
        }
    }

    private static func reply(_ success: APNsChannelEndpoint.Success, _ id: String) -> Reply {
        var reply = Reply(status: success.status, headers: [Header("apns-request-id", id)], body: success.body)
        if success.status == 201, let channel = success.channel {
            reply.headers.append(Header("apns-channel-id", channel))
        }
        if success.status == 200, success.body.isEmpty {
            reply.headers.append(Header("apns-unique-id", UUID().uuidString))
        }
        if !success.body.isEmpty { reply.headers.append(Header("content-type", "application/json")) }
        return reply
    }
}
