import PushProtocol

/// FCM's `messages:send` for every project, and Google's token endpoint on the same port. Safe from any thread.
final class FCMProvider: Sendable {
    private let state: SimulatorState
    private let tokenEndpoint: TokenEndpoint

    init(in state: SimulatorState) {
        self.state = state
        tokenEndpoint = TokenEndpoint(in: state)
    }

    func answer(_ request: ProviderRequest) -> SimulatedResponse {
        if request.path == TokenEndpoint.path { return tokenEndpoint.answer(request) }
        if let operation = FCMTopicEndpoint.Operation(request.path) { return answer(operation, request) }
        let project = Self.project(of: request.path)
        var response = SimulatedResponse(actions: [], app: project)
        do throws(FCMRejection) {
            let validator = try FCMRequestValidator(request, project: project, state: state)
            response.target = validator.token
            try validator.checkToken(state.pinnedTokens, at: request.receivedAt)
            let now = request.receivedAt
            if let rejection = quota.consume(project: validator.project, token: validator.token, at: now) {
                response.reason = FCMErrorCode.quotaExceeded.rawValue
                response.detail = rejection.detail
                let answer = quota.answer(rejection)
                response.actions = [.respond(Self.rejection(answer, rejection.detail, at: now), bodyAfter: .zero)]
                return response
            }
            play(outcome(for: validator), for: validator, at: request.receivedAt, into: &response)
        } catch {
            quota.consumeRejection(error.status, project: project, at: request.receivedAt)
            reject(error, at: request.receivedAt, into: &response)
        }
        return response
    }

    /// Responds to topic subscriptions. Outcomes cannot be scripted for them.
    private func answer(_ operation: FCMTopicEndpoint.Operation, _ request: ProviderRequest) -> SimulatedResponse {
        var response = SimulatedResponse(actions: [], app: operation.project)
        do throws(FCMRejection) {
            let project = try FCMRequestValidator.authorizedProject(request, project: operation.project, state: state)
            response.app = project
            let reply = try FCMTopicEndpoint(topics: state.topics).answer(operation, request, project: project)
            response.actions = [.respond(reply, bodyAfter: .zero)]
        } catch {
            reject(error, at: request.receivedAt, into: &response)
        }
        return response
    }

    private var quota: FCMQuota { FCMQuota(rateLimits: state.rateLimits) }

    private func reject(_ error: FCMRejection, at now: Timestamp, into response: inout SimulatedResponse) {
        var answer = ScriptedResponse(error.status, errorCode: error.errorCode?.rawValue)
        if !error.violations.isEmpty { answer.details = [FCMErrorEnvelope.badRequest(error.violations)] }
        response.reason = Self.reason(answer)
        response.detail =
            error.violations.isEmpty
            ? error.message : error.violations.map { "\($0.field): \($0.description)" }.joined(separator: "; ")
        response.actions = [
            .respond(Self.rejection(answer, error.message, at: now), bodyAfter: .zero)
        ]
    }

    /// `/v1/projects/<project>/messages:send`.
    private static func project(of path: String) -> String? {
        let (prefix, suffix) = ("/v1/projects/", "/messages:send")
        guard path.hasPrefix(prefix), path.hasSuffix(suffix), path.utf8.count > prefix.utf8.count + suffix.utf8.count
        else { return nil }
        let project = path.dropFirst(prefix.count).dropLast(suffix.count)
        return project.contains("/") ? nil : String(project)
    }

    private func outcome(for validator: FCMRequestValidator) -> ScriptedOutcome {
        // A dry run validates the message and sends nothing, also not to APNs.
        if validator.isDryRun { return ScriptedOutcome(.answer(ScriptedResponse(200))) }
        let scenario = validator.token.flatMap(FCMScenario.outcome)
        return state.outcomes.take(.fcm, token: validator.token, app: validator.project, scenario: scenario)
            ?? ScriptedOutcome(.answer(ScriptedResponse(200)))
    }

    private func play(
        _ outcome: ScriptedOutcome, for validator: FCMRequestValidator, at now: Timestamp,
        into response: inout SimulatedResponse
    ) {
        let name =
            "projects/\(validator.project)/messages/" + (validator.isDryRun ? "fake_message_id" : Self.messageID(now))
        response.actions = outcome.actions { answer in
            guard answer.status == 200 else { return Self.rejection(answer, "scripted by the simulator", at: now) }
            return Reply(
                status: 200, headers: [Self.json],
                body: answer.body ?? JSONWriter.object { $0.member("name", name) })
        }
        response.fault = outcome.label
        response.isDelivered = outcome.isProcessed && !validator.isDryRun
        if outcome.isProcessed { response.messageID = name }
        if response.isDelivered { response.subscribers = Array(subscribers(validator).prefix(PhoneWall.maximumPhones)) }
        if let answer = outcome.answer, answer.status != 200 { response.reason = Self.reason(answer) }
    }

    /// The phones subscribed to the message's topic or condition.
    private func subscribers(_ validator: FCMRequestValidator) -> [String] {
        if let topic = validator.topic { return Array(state.topics.subscribers(of: topic, of: validator.project)) }
        return validator.condition.map { state.topics.instances(where: $0, of: validator.project) } ?? []
    }

    private static func reason(_ answer: ScriptedResponse) -> String {
        answer.errorCode ?? FCMErrorEnvelope.canonicalStatus(of: answer.status)
    }

    static let json = Header("content-type", "application/json; charset=UTF-8")

    private static func rejection(_ answer: ScriptedResponse, _ message: String, at now: Timestamp) -> Reply {
        var details = answer.details
        if let code = answer.errorCode { details.insert(FCMErrorEnvelope.fcmError(code), at: 0) }
        var reply = Reply(
            status: answer.status, headers: [answer.contentType.map { Header("content-type", $0) } ?? json],
            body: answer.body ?? FCMErrorEnvelope.body(status: answer.status, message: message, details: details))
        if let retryAfter = answer.retryAfterHeader(at: now) { reply.headers.append(retryAfter) }
        return reply
    }

    /// Opaque, with the `:` and `%` of real message names, which clients must not decode.
    private static func messageID(_ now: Timestamp) -> String {
        let random = UInt64.random(in: .min ... .max)
        return "0:\(now.milliseconds)000%\(String(random, radix: 16))"
    }
}
