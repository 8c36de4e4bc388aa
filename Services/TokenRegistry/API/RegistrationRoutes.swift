import HTTPGate
import HTTPTypes
import Hummingbird
import PushProtocol

/// The two endpoints that the mobile clients call, to the letter:
/// `POST /api/notifications/push/register` and `…/unregister`, answered `{"success":…,"error":…}`.
///
/// A user registers only their own devices: the user is whom the bearer token names, and so is the app. A client that
/// names its installation in `X-Client-Id` has its earlier token replaced by a new one.
struct RegistrationRoutes: Sendable {
    private let store: RegistrationStore
    private let registering: GroupCommit
    private let gate: BearerGate

    init(store: RegistrationStore, gate: BearerGate) {
        self.store = store
        registering = GroupCommit { try await store.register($0) }
        self.gate = gate
    }

    func add(to router: Router<BasicRequestContext>) {
        let group = router.group("api/notifications/push")
        group.post("register") { request, context in
            await answer(request, context) { claim in try await registering.register(claim) }
        }
        group.post("unregister") { request, context in
            await answer(request, context) { claim in try await store.unregister([claim]) }
        }
    }

    private func answer(
        _ request: Request, _ context: BasicRequestContext, carryOut: (Claim) async throws -> Void
    ) async -> Response {
        await .answering(context, telling: Response.registration) {
            let caller = try await gate.admit(request.bearerToken)
            let body = try await read(request)
            var claim = Claim(
                app: caller.app, user: caller.user, provider: body.provider, environment: body.environment,
                token: body.token, installation: try installation(request))
            if body.provider == .fcm { claim.platform = .android }
            try await carryOut(claim)
            return .json(.ok, ["success": true, "error": nil])
        }
    }

    private func installation(_ request: Request) throws(APIRefusal) -> InstallationID? {
        guard let text = request.headers[.clientID] else { return nil }
        guard let id = InstallationID(rawValue: text) else {
            throw APIRefusal(
                status: .badRequest,
                message: "the header X-Client-Id is invalid: expected 1–128 visible ASCII characters")
        }
        return id
    }

    private func read(_ request: Request) async throws(APIRefusal) -> RegistrationBody {
        let bytes = try await request.json(upTo: RegistrationBody.maximumSize)
        do {
            return try RegistrationBody(bytes)
        } catch {
            throw APIRefusal(status: .badRequest, message: error.description)
        }
    }
}

extension HTTPField.Name {
    fileprivate static let clientID = HTTPField.Name("X-Client-Id")!
}

extension Response {
    /// The body that the mobile clients expect, whatever happened.
    fileprivate static func registration(_ refusal: APIRefusal) -> Response {
        json(refusal.status, ["success": false, "error": .string(refusal.message)], headers: refusal.headers)
    }
}
