import FoundationEssentials
import PushProtocol
import Synchronization

/// One APNs environment. Validates a request, then plays a scripted outcome or accepts it. Safe from any thread.
final class APNsProvider: Sendable {
    let environment: ProviderEnvironment
    let state: SimulatorState
    let channelEndpoint = APNsChannelEndpoint(channels: APNsChannels())
    private let connections = Mutex<[Int: APNsConnection]>([:])

    init(_ environment: ProviderEnvironment, in state: SimulatorState) {
        self.environment = environment
        self.state = state
    }

    func answer(_ request: ProviderRequest) -> SimulatedResponse {
        let connection = connection(request.connection)
        var response = respondToChannelRequest(request, on: connection) ?? respondToPush(request, on: connection)
        recordStatus(&response, on: connection)
        return response
    }

    private func respondToPush(_ request: ProviderRequest, on connection: APNsConnection) -> SimulatedResponse {
        let push = APNsPush(request)
        var validator = APNsRequestValidator(
            push, connection: connection, apps: state.apps, pinnedTokens: state.pinnedTokens,
            environment: environment, now: request.receivedAt)
        let rejection = validator.rejection() ?? deviceLimitExceeded(validator.token, at: request.receivedAt)
        let id = responseID(push.id)
        var response = SimulatedResponse(
            actions: [], target: validator.token ?? push.token.map { $0.lowercased() }, app: push.topic, messageID: id)
        if let rejection {
            response.reason = rejection.reason.rawValue
            response.detail = rejection.detail
            response.actions = [
                .respond(reply(ScriptedResponse(apns: rejection.reason), id, request.receivedAt), bodyAfter: .zero)
            ]
            return response
        }
        let token = validator.token
        let scenario = state.readsTokenPrefixes ? token.flatMap(APNsScenario.outcome) : nil
        let outcome =
            state.outcomes.take(.apns, token: token, app: validator.topic?.bundle, scenario: scenario)
            ?? ScriptedOutcome(.answer(ScriptedResponse(200)))
        play(outcome, into: &response, connection, at: request.receivedAt)
        if response.isDelivered { noteFollower(push, token, validator.topic?.bundle) }
        return response
    }

    /// Removes the state of a closed connection.
    func connectionClosed(_ number: Int) { connections.withLock { $0[number] = nil } }

    private func connection(_ number: Int) -> APNsConnection {
        connections.withLock { connections in
            if let known = connections[number] { return known }
            let new = APNsConnection()
            connections[number] = new
            return new
        }
    }

    private func deviceLimitExceeded(_ token: String?, at now: Timestamp) -> APNsRejection? {
        guard let token,
            state.rateLimits.consume(\.apnsDevicePerSecond, per: .seconds(1), on: "second \(token)", at: now) != nil
        else { return nil }
        return APNsRejection(.tooManyRequests, "the device's limit of pushes a second is reached")
    }

    /// Applies the error limit of a connection: SETTINGS with one stream, then GOAWAY. Apple documents neither the
    /// number of errors nor the frames; a limit of one stream was observed (ProviderFacts.md §A.3).
    private func recordStatus(_ response: inout SimulatedResponse, on connection: APNsConnection) {
        guard let limit = state.rateLimits.limits.apnsErrors, let status = response.status else { return }
        switch connection.recordStatus(status, reason: response.reason, limit: limit) {
        case .nothing: break
        case .throttle: response.actions.append(.limitStreams(1))
        case .relax: response.actions.append(.limitStreams(state.apnsStreams))
        case .end: response.actions.append(.goAway(GoAway(lastStream: .included, code: 11)))
        }
    }

    func play(
        _ outcome: ScriptedOutcome, into response: inout SimulatedResponse, _ connection: APNsConnection,
        at now: Timestamp
    ) {
        let id = response.messageID
        response.actions = outcome.actions { reply($0, id, now) }
        response.fault = outcome.label
        response.isDelivered = outcome.isProcessed
        guard let answer = outcome.answer else { return }
        response.reason = answer.status == 200 ? nil : answer.reason
        if answer.reason == APNsReason.expiredProviderToken.rawValue { connection.markTokenExpired() }
        // A connection starts with one stream; the first accepted provider token raises the limit (ProviderFacts.md
        // §A.3).
        if answer.status == 200, connection.isFirstSuccess(), outcome.streams == nil {
            response.actions.insert(.limitStreams(state.apnsStreams), at: 0)
        }
    }

    /// The request's own id, or a new one in upper case.
    private func responseID(_ id: String?) -> String {
        guard let id, APNsRequestValidator.isCanonicalUUID(id) else { return UUID().uuidString }
        return id
    }

    private func reply(_ answer: ScriptedResponse, _ id: String?, _ now: Timestamp) -> Reply {
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

    private static func body(_ answer: ScriptedResponse, _ now: Timestamp) -> [UInt8] {
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

    /// The debug data of a GOAWAY: `{"reason": …}`.
    static func goAwayData(_ reason: APNsReason) -> [UInt8] {
        JSONWriter.object { $0.member("reason", reason.rawValue) }
    }
}
