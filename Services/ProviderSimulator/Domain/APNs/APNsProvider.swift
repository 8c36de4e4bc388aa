import FoundationEssentials
import PushProtocol
import Synchronization

/// One environment of APNs: what comes to its port is reviewed by the table of checks, then answered as scripted, then
/// accepted. Safe from any thread.
final class APNsProvider: Sendable {
    let environment: ProviderEnvironment
    let world: World
    let desk = APNsChannelDesk(channels: APNsChannels())
    private let connections = Mutex<[Int: APNsConnection]>([:])

    init(_ environment: ProviderEnvironment, in world: World) {
        self.environment = environment
        self.world = world
    }

    func answer(_ request: ProviderRequest) -> Verdict {
        let connection = connection(request.connection)
        var verdict = answerChannels(request, on: connection) ?? answerPush(request, on: connection)
        score(&verdict, on: connection)
        return verdict
    }

    private func answerPush(_ request: ProviderRequest, on connection: APNsConnection) -> Verdict {
        let push = APNsPush(request)
        var review = APNsReview(
            push, connection: connection, apps: world.apps, registrations: world.registrations,
            environment: environment, now: request.receivedAt)
        let refusal = review.refusal() ?? overLimit(review.token, at: request.receivedAt)
        let id = responseID(push.id)
        var verdict = Verdict(
            acts: [], target: review.token ?? push.token.map { $0.lowercased() }, app: push.topic, messageID: id)
        if let refusal {
            verdict.reason = refusal.reason.rawValue
            verdict.detail = refusal.detail
            verdict.acts = [
                .respond(reply(ScriptedAnswer(apns: refusal.reason), id, request.receivedAt), bodyAfter: .zero)
            ]
            return verdict
        }
        let token = review.token
        let scenario = world.readsTokenPrefixes ? token.flatMap(APNsScenario.outcome) : nil
        let outcome =
            world.outcomes.take(.apns, token: token, app: review.topic?.bundle, scenario: scenario)
            ?? ScriptedOutcome(.answer(ScriptedAnswer(200)))
        play(outcome, into: &verdict, connection, at: request.receivedAt)
        return verdict
    }

    /// Forgets a connection that ended.
    func connectionClosed(_ number: Int) { connections.withLock { $0[number] = nil } }

    private func connection(_ number: Int) -> APNsConnection {
        connections.withLock { connections in
            if let known = connections[number] { return known }
            let new = APNsConnection()
            connections[number] = new
            return new
        }
    }

    private func overLimit(_ token: String?, at now: Timestamp) -> APNsRefusal? {
        guard let token,
            world.allowances.spend(\.apnsDevicePerSecond, per: .seconds(1), on: "second \(token)", at: now) != nil
        else { return nil }
        return APNsRefusal(.tooManyRequests, "the device's pushes of this second are used up")
    }

    /// APNs bears with a connection's errors up to a point: first it takes streams away, then it hangs up (A.3). How many
    /// errors that takes is not said; neither are the frames, beyond that the limit was seen to fall to one.
    private func score(_ verdict: inout Verdict, on connection: APNsConnection) {
        guard let limit = world.allowances.limits.apnsErrors, let status = verdict.status else { return }
        switch connection.score(status, reason: verdict.reason, limit: limit) {
        case .nothing: break
        case .throttle: verdict.acts.append(.limitStreams(1))
        case .relax: verdict.acts.append(.limitStreams(world.apnsStreams))
        case .end: verdict.acts.append(.goAway(GoAway(lastStream: .included, code: 11)))
        }
    }

    func play(
        _ outcome: ScriptedOutcome, into verdict: inout Verdict, _ connection: APNsConnection, at now: Timestamp
    ) {
        let id = verdict.messageID
        verdict.acts = outcome.acts { reply($0, id, now) }
        verdict.fault = outcome.label
        verdict.isDelivered = outcome.isTaken
        guard let answer = outcome.answer else { return }
        verdict.reason = answer.status == 200 ? nil : answer.reason
        if answer.reason == APNsReason.expiredProviderToken.rawValue { connection.wedge() }
        // A connection starts with one stream and gets the rest once a provider token has proved itself (A.3).
        if answer.status == 200, connection.isFirstSuccess(), outcome.streams == nil {
            verdict.acts.insert(.limitStreams(world.apnsStreams), at: 0)
        }
    }

    /// The sender's own id, or a new one, in upper case as users see them.
    private func responseID(_ id: String?) -> String {
        guard let id, APNsReview.isCanonicalUUID(id) else { return UUID().uuidString }
        return id
    }

    private func reply(_ answer: ScriptedAnswer, _ id: String?, _ now: Timestamp) -> Reply {
        var reply = Reply(status: answer.status)
        if let id, !answer.omitsID { reply.headers.append(Header("apns-id", id)) }
        if environment == .development { reply.headers.append(Header("apns-unique-id", UUID().uuidString)) }
        if let retryAfter = answer.retryAfterHeader(at: now) { reply.headers.append(retryAfter) }
        if let body = answer.body {
            reply.body = body
        } else if answer.status != 200 {
            reply.body = Self.body(answer, now)
        }
        if !reply.body.isEmpty {
            reply.headers.append(Header("content-type", answer.contentType ?? "application/json"))
        }
        return reply
    }

    private static func body(_ answer: ScriptedAnswer, _ now: Timestamp) -> [UInt8] {
        JSONWriter.object { writer in
            writer.member("reason", answer.reason)
            guard answer.status == 410 else { return }
            switch answer.timestamp {
            case .absent: break
            case .ago(let duration): writer.member("timestamp", (now - duration).milliseconds)
            case .at(let moment): writer.member("timestamp", moment.milliseconds)
            }
        }
    }

    /// The debug data of a GOAWAY: a reason as JSON.
    static func goAwayData(_ reason: APNsReason) -> [UInt8] {
        JSONWriter.object { $0.member("reason", reason.rawValue) }
    }
}
