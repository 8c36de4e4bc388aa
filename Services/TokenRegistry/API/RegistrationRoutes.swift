import Hummingbird
import HTTPTypes
import Logging
import NIOCore
import PushProtocol

/// The two endpoints that the mobile clients call, to the letter:
/// `POST /api/notifications/push/register` and `…/unregister`, answered `{"success":…,"error":…}`.
///
/// A user registers only their own devices: the user is whom the bearer token names, and so is the app. A client that
/// names its installation in `X-Client-Id` has its earlier token replaced by a new one.
struct RegistrationRoutes: Sendable {
    private let store: RegistrationStore
    private let gate: BearerGate

    init(store: RegistrationStore, gate: BearerGate) {
        self.store = store
        self.gate = gate
    }

    func add(to router: Router<BasicRequestContext>) {
        let group = router.group("api/notifications/push")
        group.post("register") { request, context in
            try await answer(request, context) { claim in try await store.register([claim]) }
        }
        group.post("unregister") { request, context in
            try await answer(request, context) { claim in try await store.unregister([claim]) }
        }
    }

    private func answer(
        _ request: Request, _ context: BasicRequestContext, carryOut: (Claim) async throws -> Void
    ) async throws -> Response {
        do {
            let caller = try await gate.admit(request.bearerToken)
            let body = try await read(request)
            try await carryOut(
                Claim(
                    app: caller.app, user: caller.user, provider: body.provider, environment: body.environment,
                    token: body.token, installation: try installation(request)))
            return .registration(.ok, error: nil)
        } catch let refusal as APIRefusal {
            return .registration(refusal.status, error: refusal.message, challenge: refusal.challenge)
        } catch {
            context.logger.error("registration could not be stored", metadata: ["error": "\(error)"])
            return .registration(.serviceUnavailable, error: "the registry's database is away; try again")
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
        let buffer: ByteBuffer
        do {
            buffer = try await request.body.collect(upTo: RegistrationBody.maximumSize)
        } catch {
            throw APIRefusal(
                status: .contentTooLarge, message: "the body is larger than \(RegistrationBody.maximumSize) bytes")
        }
        do {
            return try RegistrationBody(Array(buffer.readableBytesView))
        } catch {
            throw APIRefusal(status: .badRequest, message: error.description)
        }
    }
}

extension HTTPField.Name {
    fileprivate static let clientID = HTTPField.Name("X-Client-Id")!
}

/// A request that is turned down, and why.
struct APIRefusal: Error {
    let status: HTTPResponse.Status
    let message: String
    /// What `WWW-Authenticate` says (RFC 6750 §3), where it says more than `Bearer`.
    var challenge: String?
}

extension Request {
    /// The credentials of `Authorization: Bearer …` (RFC 6750 §2.1; the scheme's case does not matter).
    var bearerToken: String? {
        guard let header = headers[.authorization], header.count > 7, header.prefix(7).lowercased() == "bearer " else {
            return nil
        }
        return String(header.dropFirst(7))
    }
}

extension Response {
    /// The body that the mobile clients expect, whatever happened.
    static func registration(_ status: HTTPResponse.Status, error: String?, challenge: String? = nil) -> Response {
        json(
            status, ["success": .bool(error == nil), "error": error.map(JSONValue.string) ?? .null],
            challenge: challenge)
    }

    static func json(_ status: HTTPResponse.Status, _ value: JSONValue, challenge: String? = nil) -> Response {
        // A JSONValue always encodes: its only failure, a number that is not finite, cannot be read from JSON.
        let body = (try? WireCoding.encode(value)) ?? []
        var headers: HTTPFields = [.contentType: "application/json; charset=utf-8"]
        if let challenge = challenge ?? (status == .unauthorized ? "Bearer" : nil) {
            headers[.wwwAuthenticate] = challenge
        }
        return Response(status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: body)))
    }
}
