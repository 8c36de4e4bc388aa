import FoundationEssentials
import PushProtocol

/// A push service (RFC 8030) and the browsers behind it, which decrypt each message. Safe from any thread.
final class WebPushProvider: Sendable {
    private let state: SimulatorState

    init(in state: SimulatorState) { self.state = state }

    func answer(_ request: ProviderRequest) -> SimulatedResponse {
        let id = String(request.path.dropFirst())
        var response = SimulatedResponse(actions: [], target: id)
        do throws(WebPushRejection) {
            let push = try WebPushRequest(request, id: id, in: state)
            response.app = push.subscription.app
            try checkLimit(of: push.subscription, at: request.receivedAt)
            play(outcome(for: push.subscription), for: push, at: request.receivedAt, into: &response)
        } catch {
            response.reason = error.reason.rawValue
            response.detail = error.detail
            response.actions = [.respond(Self.rejection(error), bodyAfter: .zero)]
        }
        return response
    }

    private func checkLimit(of subscription: BrowserSubscription, at now: Timestamp) throws(WebPushRejection) {
        let wait = state.rateLimits.consume(
            \.webPushSubscriptionPerMinute, per: .seconds(60), on: "subscription \(subscription.id)", at: now)
        guard let wait else { return }
        throw WebPushRejection(.tooManyRequests, "the subscription's limit of messages a minute is reached", wait: wait)
    }

    private func outcome(for subscription: BrowserSubscription) -> ScriptedOutcome {
        state.outcomes.take(.webpush, token: subscription.id, app: subscription.app)
            ?? ScriptedOutcome(.answer(ScriptedResponse(201)))
    }

    private func play(
        _ outcome: ScriptedOutcome, for push: WebPushRequest, at now: Timestamp, into response: inout SimulatedResponse
    ) {
        let message = UUID().uuidString.lowercased()
        response.actions = outcome.actions { answer in
            guard answer.isAcceptance else { return Self.reply(answer, at: now) }
            return Reply(
                status: answer.status,
                headers: [
                    Header("location", "\(push.subscription.origin)/message/\(message)"), Header("ttl", "\(push.ttl)"),
                ], body: answer.body ?? [])
        }
        response.fault = outcome.label
        if let answer = outcome.answer, !answer.isAcceptance { response.reason = answer.reason }
        guard outcome.isProcessed else { return }
        response.messageID = message
        do throws(MessageDecryption.Failure) {
            response.plaintext = try push.message.message(for: push.subscription)
            response.isDelivered = true
        } catch {
            response.reason = WebPushReason.undecryptable
            response.detail = "the browser drops the message: \(error.problem)"
        }
    }

    private static func rejection(_ error: WebPushRejection) -> Reply {
        var answer = ScriptedResponse(error.reason.status, reason: error.reason.rawValue)
        // Rounded up: the window has ended by then.
        answer.retryAfter = error.wait.map { .text("\($0.components.seconds + 1)") }
        var reply = reply(answer, at: .now)
        if error.reason == .missingAuthorization { reply.headers.append(Header("www-authenticate", "vapid")) }
        return reply
    }

    private static func reply(_ answer: ScriptedResponse, at now: Timestamp) -> Reply {
        var reply = Reply(status: answer.status)
        if let body = answer.body {
            reply.body = body
        } else if let reason = answer.reason {
            reply.body = JSONWriter.object { $0.member("reason", reason) }
        }
        if !reply.body.isEmpty {
            reply.headers.append(Header("content-type", answer.contentType ?? "application/json"))
        }
        if let retryAfter = answer.retryAfterHeader(at: now) { reply.headers.append(retryAfter) }
        return reply
    }
}
