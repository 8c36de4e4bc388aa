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
        if let operation = FCMTopicDesk.Operation(request.path) { return answer(operation, request) }
        let project = Self.project(of: request.path)
        var verdict = Verdict(acts: [], app: project)
        do throws(FCMRefusal) {
            let review = try FCMReview(request, project: project, world: world)
            verdict.target = review.token
            try review.checkToken(world.registrations, at: request.receivedAt)
            if let refusal = overQuota(review, at: request.receivedAt) {
                verdict.reason = FCMErrorCode.quotaExceeded.rawValue
                verdict.detail = refusal.detail
                let answer = quota.answer(refusal)
                verdict.acts = [
                    .respond(Self.refusal(answer, refusal.detail, at: request.receivedAt), bodyAfter: .zero)
                ]
                return verdict
            }
            play(outcome(for: review), for: review, at: request.receivedAt, into: &verdict)
        } catch {
            quota.spendRefusal(error.status, project: project, at: request.receivedAt)
            refuse(error, at: request.receivedAt, into: &verdict)
        }
        return verdict
    }

    /// Subscribing to topics; scripts are for messages.
    private func answer(_ operation: FCMTopicDesk.Operation, _ request: ProviderRequest) -> Verdict {
        var verdict = Verdict(acts: [], app: operation.project)
        do throws(FCMRefusal) {
            let project = try FCMReview.authorizedProject(request, project: operation.project, world: world)
            verdict.app = project
            let reply = try FCMTopicDesk(topics: world.topics).answer(operation, request, project: project)
            verdict.acts = [.respond(reply, bodyAfter: .zero)]
        } catch {
            refuse(error, at: request.receivedAt, into: &verdict)
        }
        return verdict
    }

    private var quota: FCMQuota { FCMQuota(allowances: world.allowances) }

    private func overQuota(_ review: FCMReview, at now: Timestamp) -> FCMQuotaRefusal? {
        do throws(FCMQuotaRefusal) {
            try quota.spend(project: review.project, token: review.token, at: now)
            return nil
        } catch {
            return error
        }
    }

    private func refuse(_ error: FCMRefusal, at now: Timestamp, into verdict: inout Verdict) {
        var answer = ScriptedAnswer(error.status, errorCode: error.errorCode?.rawValue)
        if !error.violations.isEmpty { answer.details = [FCMErrorEnvelope.badRequest(error.violations)] }
        verdict.reason = Self.reason(answer)
        verdict.detail =
            error.violations.isEmpty
            ? error.message : error.violations.map { "\($0.field): \($0.description)" }.joined(separator: "; ")
        verdict.acts = [
            .respond(Self.refusal(answer, error.message, at: now), bodyAfter: .zero)
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
        if verdict.isDelivered { verdict.subscribers = Array(subscribers(review).prefix(PhoneWall.maximumPhones)) }
        if let answer = outcome.answer, answer.status != 200 { verdict.reason = Self.reason(answer) }
    }

    /// The phones that a message to a topic, or with a condition, rings.
    private func subscribers(_ review: FCMReview) -> [String] {
        if let topic = review.topic { return Array(world.topics.subscribers(of: topic, of: review.project)) }
        return review.condition.map { world.topics.instances(where: $0, of: review.project) } ?? []
    }

    private static func reason(_ answer: ScriptedAnswer) -> String {
        answer.errorCode ?? FCMErrorEnvelope.canonicalStatus(of: answer.status)
    }

    static let json = Header("content-type", "application/json; charset=UTF-8")

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
