import HTTPAuth
import HTTPTypes
import Hummingbird
import PushProtocol
import RegistryStore

/// The two endpoints that the mobile clients call: `POST /api/notifications/push/register` and `…/unregister`, answered
/// with `{"success":…,"error":…}`.
///
/// The bearer token names the user and the app, so that users register their own devices only. With an installation in
/// `X-Client-Id`, a new token replaces the installation's earlier one. With a `type` in the body, the user also joins
/// or leaves that topic.
struct RegistrationRoutes: Sendable {
    let devices: DeviceRegistrar
    let gate: BearerAuthenticator
    let changes: RateLimiter<Caller>

    func add(to router: Router<BasicRequestContext>) {
        let group = router.group("api/notifications/push")
        group.post("register") { request, context in
            await answer(request, context) { body, owner, installation in
                try await devices.register(body, of: owner, on: installation) ? 1 : 0
            }
        }
        group.post("unregister") { request, context in
            await answer(request, context) { body, owner, installation in
                try await devices.unregister(body, of: owner, on: installation)
            }
        }
    }

    /// - Parameter carryOut: returns the number of changed registrations.
    private func answer(
        _ request: Request, _ context: BasicRequestContext,
        carryOut: (RegistrationBody, AppUser, InstallationID?) async throws -> Int
    ) async -> Response {
        await .answering(context, onError: Response.registration) {
            let caller = try await gate.authenticate(request.bearerToken)
            try changes.check(caller)
            let body = try await request.registration()
            let owner = AppUser(app: caller.app, user: caller.user)
            changes.spend(try await carryOut(body, owner, try request.installation()), of: caller)
            return .json(.ok, ["success": true, "error": nil])
        }
    }
}

extension Request {
    /// The installation that the header `X-Client-Id` names; `nil` without one.
    func installation() throws(APIError) -> InstallationID? {
        guard let text = headers[.clientID] else { return nil }
        guard let id = InstallationID(rawValue: text) else {
            throw APIError(
                status: .badRequest,
                message: "the header X-Client-Id is invalid: expected 1–128 visible ASCII characters")
        }
        return id
    }

    func registration() async throws(APIError) -> RegistrationBody {
        try await read(atMost: RegistrationBody.maximumSize, RegistrationBody.init)
    }
}

extension HTTPField.Name {
    fileprivate static let clientID = HTTPField.Name("X-Client-Id")!
}

extension Response {
    /// The error body that the mobile clients expect.
    fileprivate static func registration(_ refusal: APIError) -> Response {
        json(refusal.status, ["success": false, "error": .string(refusal.message)], headers: refusal.headers)
    }
}
