import Foundation
import PushProtocol

/// Google's token endpoint: exchanges an assertion for an opaque access token.
struct TokenEndpoint: Sendable {
    static let path = "/token"
    static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    private let state: SimulatorState

    init(in state: SimulatorState) { self.state = state }

    func answer(_ request: ProviderRequest) -> SimulatedResponse {
        let now = request.receivedAt
        do throws(ServiceAccountAssertion.OAuthError) {
            let assertion = try Self.assertion(of: request)
            let account = try ServiceAccountAssertion.verify(assertion, apps: state.apps, at: now)
            let outcome =
                state.outcomes.take(.oauth, token: nil, app: account.project)
                ?? ScriptedOutcome(.answer(ScriptedResponse(200)))
            return play(outcome, for: account, at: now)
        } catch {
            let reply = Self.rejection(error.error, error.description, status: 400)
            return SimulatedResponse(
                actions: [.respond(reply, bodyAfter: .zero)], reason: error.error, detail: error.description)
        }
    }

    private static func assertion(of request: ProviderRequest) throws(ServiceAccountAssertion.OAuthError) -> String {
        guard request.method == "POST" else { throw .init("the method is not POST", error: "invalid_request") }
        let form = FormFields(request.body)
        guard form["grant_type"] == grantType else {
            throw .init("grant_type is not \(grantType)", error: "unsupported_grant_type")
        }
        guard let assertion = form["assertion"], !assertion.isEmpty else {
            throw .init("the assertion is missing", error: "invalid_request")
        }
        return assertion
    }

    private func play(_ outcome: ScriptedOutcome, for account: ServiceAccount, at now: Timestamp) -> SimulatedResponse {
        var response = SimulatedResponse(actions: [], app: account.project)
        response.actions = outcome.actions { answer in
            guard answer.status == 200, answer.body == nil else { return Self.scripted(answer, at: now) }
            let expiresIn = answer.expiresIn ?? .int(state.accessTokenLifetime)
            let lifetime = expiresIn.int ?? expiresIn.string.flatMap { Int64($0) } ?? state.accessTokenLifetime
            let token = state.accessTokens.issue(project: account.project, lifetime: lifetime, at: now)
            return Reply(
                status: 200, headers: [Self.json],
                body: JSONWriter.object { writer in
                    writer.member("access_token", token)
                    writer.name("expires_in")
                    writer.value(expiresIn)
                    writer.member("token_type", "Bearer")
                })
        }
        response.fault = outcome.label
        if let answer = outcome.answer, answer.status != 200 {
            response.reason = answer.reason ?? Self.usualError(of: answer.status)
        }
        return response
    }

    private static let json = Header("content-type", "application/json; charset=utf-8")

    private static func usualError(of status: Int) -> String {
        switch status {
        case 500...: "internal_failure"
        case 429: "temporarily_unavailable"
        default: "invalid_grant"
        }
    }

    private static func scripted(_ answer: ScriptedResponse, at now: Timestamp) -> Reply {
        var reply = rejection(
            answer.reason ?? usualError(of: answer.status), "scripted by the simulator", status: answer.status)
        if let body = answer.body { reply.body = body }
        if let type = answer.contentType { reply.headers = [Header("content-type", type)] }
        if let retryAfter = answer.retryAfterHeader(at: now) { reply.headers.append(retryAfter) }
        return reply
    }

    private static func rejection(_ error: String, _ description: String, status: Int) -> Reply {
        Reply(
            status: status, headers: [json],
            body: JSONWriter.object { writer in
                writer.member("error", error)
                writer.member("error_description", description)
            })
    }
}

/// The fields of an `application/x-www-form-urlencoded` body. The first of duplicate fields wins.
struct FormFields: Sendable {
    private var fields: [String: String] = [:]

    init(_ body: [UInt8]) {
        for pair in String(decoding: body, as: UTF8.self).split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.decoded(parts[0]), fields[name] == nil else { continue }
            fields[name] = parts.count == 2 ? Self.decoded(parts[1]) : ""
        }
    }

    subscript(name: String) -> String? { fields[name] }

    private static func decoded(_ text: Substring) -> String? {
        text.replacing("+", with: " ").removingPercentEncoding
    }
}
