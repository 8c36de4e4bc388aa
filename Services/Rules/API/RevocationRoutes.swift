import DecisionLog
import HTTPAuth
import Hummingbird
import PushProtocol

/// `POST /v1/operator/revocations`: takes notifications back, by API key.
struct RevocationRoutes: Sendable {
    let revocations: RevocationLog
    let keys: APIKeyAuthenticator

    func add(to router: Router<BasicRequestContext>) {
        router.post("v1/operator/revocations") { request, context in
            await Response.answering(context) {
                // Authenticates before parsing: without a key, an error must not reveal the members.
                let caller = try await keys.caller(request.bearerToken, to: .revokeNotifications)
                let body = try await request.read(atMost: RevocationBody.maximumSize, RevocationBody.init)
                try keys.authorize(caller, to: .revokeNotifications, of: body.request.app)
                return try await answer(body.request, by: RevocationRequest.Requester(caller))
            }
        }
    }

    private func answer(
        _ request: RevocationRequest, by requester: RevocationRequest.Requester
    ) async throws -> Response {
        switch try await revocations.record(request, by: requester) {
        case .recorded(let revocation, let isNew): .json(isNew ? .accepted : .ok, revocation.json)
        case .unknown: throw Self.unknown(request.target)
        case .isCampaign:
            throw APIError(
                status: .unprocessableContent,
                message: "notification: the id is that of a campaign; cancel it with pushctl campaigns cancel")
        }
    }

    private static func unknown(_ target: RevocationRequest.Target) -> APIError {
        switch target {
        case .event:
            APIError(
                status: .notFound,
                message: "the app has no event with this id; check the id, or send “ahead”: true to revoke it "
                    + "when it arrives")
        case .notification:
            APIError(
                status: .notFound,
                message: "the app has no notification with this id, or not for this user; "
                    + "pushctl explain prints the ids")
        }
    }
}

extension RevocationRequest.Requester {
    fileprivate init(_ caller: APIKeyAuthenticator.Principal) {
        switch caller {
        case .master: self = .masterKey
        case .key(let record): self = .key(record.id)
        }
    }
}
