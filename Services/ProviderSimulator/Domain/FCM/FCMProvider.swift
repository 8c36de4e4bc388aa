import PushProtocol

/// FCM's front end: `messages:send` of every project, and Google's token endpoint on the same port. Safe from any
/// thread.
final class FCMProvider: Sendable {
    private let world: World
    private let tokenEndpoint: TokenEndpoint

    init(in world: World) {
        self.world = world
        tokenEndpoint = TokenEndpoint(in: world)
    }

    func answer(_ request: ProviderRequest) -> Verdict {
        if request.path == TokenEndpoint.path { return tokenEndpoint.answer(request) }
        let project = Self.project(of: request.path)
        var verdict = Verdict(acts: [], app: project)
        do throws(FCMRefusal) {
            let review = try FCMReview(request, project: project, world: world)
            verdict.target = review.token
            try review.checkToken(world.registrations)
            play(outcome(for: review), for: review, at: request.receivedAt, into: &verdict)
        } catch {
            var answer = ScriptedAnswer(error.status, errorCode: error.errorCode?.rawValue)
            if !error.violations.isEmpty { answer.details = [FCMErrorEnvelope.badRequest(error.violations)] }
            verdict.reason = Self.reason(answer)
            verdict.detail =
                error.violations.isEmpty
                ? error.message : error.violations.map { "\($0.field): \($0.description)" }.joined(separator: "; ")
            verdict.acts = [
                .respond(Self.refusal(answer, error.message, at: request.receivedAt), bodyAfter: .zero)
            ]
        }
        return verdict
    }

    /// `/v1/projects/<project>/messages:send`.
    private static func project(of path: String) -> String? {
        let (prefix, suffix) = ("/v1/projects/", "/messages:send")
        guard path.hasPrefix(prefix), path.hasSuffix(suffix), path.utf8.count > prefix.utf8.count + suffix.utf8.count
        else { return nil }
        let project = path.dropFirst(prefix.count).dropLast(suffix.count)
        return project.contains("/") ? nil : String(project)
    }

    private func outcome(for review: FCMReview) -> ScriptedOutcome {
        // A dry run checks the message and reaches nobody, Apple included (D.3.5).
        if review.isDryRun { return ScriptedOutcome(.answer(ScriptedAnswer(200))) }
        let scenario = review.token.flatMap(FCMScenario.outcome)
        return world.outcomes.take(.fcm, token: review.token, app: review.project, scenario: scenario)
            ?? ScriptedOutcome(.answer(ScriptedAnswer(200)))
    }

    private func play(
        _ outcome: ScriptedOutcome, for review: FCMReview, at now: Timestamp, into verdict: inout Verdict
    ) {
        let name = "projects/\(review.project)/messages/" + (review.isDryRun ? "fake_message_id" : Self.messageID(now))
        verdict.acts = outcome.acts { answer in
            guard answer.status == 200 else { return Self.refusal(answer, "scripted by the simulator", at: now) }
            return Reply(
                status: 200, headers: [Self.json],
                body: answer.body ?? JSONWriter.object { $0.member("name", name) })
        }
        verdict.fault = outcome.label
        verdict.isDelivered = outcome.isTaken && !review.isDryRun
        if outcome.isTaken { verdict.messageID = name }
        if let answer = outcome.answer, answer.status != 200 { verdict.reason = Self.reason(answer) }
    }

    private static func reason(_ answer: ScriptedAnswer) -> String {
        answer.errorCode ?? FCMErrorEnvelope.canonicalStatus(of: answer.status)
    }

    private static let json = Header("content-type", "application/json; charset=UTF-8")

    private static func refusal(_ answer: ScriptedAnswer, _ message: String, at now: Timestamp) -> Reply {
        var details = answer.details
        if let code = answer.errorCode { details.insert(FCMErrorEnvelope.fcmError(code), at: 0) }
        var reply = Reply(
            status: answer.status, headers: [answer.contentType.map { Header("content-type", $0) } ?? json],
            body: answer.body ?? FCMErrorEnvelope.body(status: answer.status, message: message, details: details))
        if let retryAfter = answer.retryAfterHeader(at: now) { reply.headers.append(retryAfter) }
        return reply
    }

    /// Opaque, and with the `:` and `%` that real ones have and careless clients decode.
    private static func messageID(_ now: Timestamp) -> String {
        let random = UInt64.random(in: .min ... .max)
        return "0:\(now.milliseconds)000%\(String(random, radix: 16))"
    }
}
