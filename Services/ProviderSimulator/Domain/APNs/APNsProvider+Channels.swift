import FoundationEssentials
import PushProtocol

/// What is not a push to a device.
extension APNsProvider {
    /// What APNs says to a request about channels; `nil` for any other path.
    func answerChannels(_ request: ProviderRequest, on connection: APNsConnection) -> Verdict? {
        guard let operation = APNsChannelDesk.Operation(request.path) else { return nil }
        let given = request["apns-request-id"]
        let id = given.flatMap { APNsReview.isCanonicalUUID($0) ? $0 : nil } ?? UUID().uuidString
        var verdict = Verdict(acts: [], app: operation.bundle, messageID: id)
        do throws(APNsChannelRefusal) {
            let key = try authorize(request, on: connection)
            let success = try desk.perform(operation, request, key: key)
            let scripted: ScriptedOutcome? =
                if case .broadcast = operation {
                    world.outcomes.take(.apns, token: success.channel?.lowercased(), app: operation.bundle)
                } else {
                    nil
                }
            if let scripted, scripted.answer?.status != 200 || scripted.label != nil {
                play(scripted, into: &verdict, connection, at: request.receivedAt)
                return verdict
            }
            verdict.isDelivered = operation == .broadcast(operation.bundle)
            verdict.acts = [.respond(Self.reply(success, id), bodyAfter: .zero)]
            if connection.isFirstSuccess() { verdict.acts.insert(.limitStreams(world.apnsStreams), at: 0) }
        } catch {
            verdict.reason = error.reason
            verdict.detail = error.detail
            var reply = Reply(status: error.status, headers: [Header("apns-request-id", id)])
            reply.headers.append(Header("content-type", "application/json"))
            reply.body = JSONWriter.object { $0.member("reason", error.reason) }
            verdict.acts = [.respond(reply, bodyAfter: .zero)]
        }
        return verdict
    }

    private func authorize(
        _ request: ProviderRequest, on connection: APNsConnection
    ) throws(APNsChannelRefusal) -> APNsKey {
        guard let authorization = request["authorization"] else {
            throw APNsChannelRefusal(403, "MissingProviderToken", "there is no authorization header")
        }
        do throws(APNsRefusal) {
            return try connection.admit(
                authorization, apps: world.apps, environment: environment, now: request.receivedAt)
        } catch {
            throw APNsChannelRefusal(error.reason.status, error.reason.rawValue, error.detail)
        }
    }

    private static func reply(_ success: APNsChannelDesk.Success, _ id: String) -> Reply {
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
