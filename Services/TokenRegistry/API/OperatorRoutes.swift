import Crypto
import FoundationEssentials
import Hummingbird
import Logging
import PushProtocol

/// What an operator may ask: `GET /v1/operator/devices?app=…&user=…`, with `Authorization: Bearer <operator key>`.
/// Tokens are masked.
struct OperatorRoutes: Sendable {
    private let store: RegistrationStore
    /// The digest of the key; `nil` closes these routes.
    private let keyDigest: SHA256.Digest?

    init(store: RegistrationStore, key: String?) {
        self.store = store
        keyDigest = key.map { SHA256.hash(data: Array($0.utf8)) }
    }

    func add(to router: Router<BasicRequestContext>) {
        router.get("v1/operator/devices") { request, context in
            do {
                try authorize(request)
                let devices = try await devices(request).map(\.json)
                return Response.json(.ok, ["devices": .array(devices)])
            } catch let refusal as APIRefusal {
                return Response.json(refusal.status, ["error": .string(refusal.message)])
            } catch {
                context.logger.error("devices could not be listed", metadata: ["error": "\(error)"])
                return Response.json(.serviceUnavailable, ["error": "the registry's database is away; try again"])
            }
        }
    }

    /// Compares digests, in constant time.
    private func authorize(_ request: Request) throws(APIRefusal) {
        guard let keyDigest else {
            throw APIRefusal(
                status: .notFound, message: "the operator API is closed: REGISTRY_OPERATOR_KEY is not configured")
        }
        guard let token = request.bearerToken, SHA256.hash(data: Array(token.utf8)) == keyDigest else {
            throw APIRefusal(
                status: .unauthorized, message: "send the operator key: Authorization: Bearer <REGISTRY_OPERATOR_KEY>")
        }
    }

    private func devices(_ request: Request) async throws -> [RegistrationRecord] {
        let query = request.uri.queryParameters
        guard let app = query["app"].flatMap({ AppID(rawValue: String($0)) }) else {
            throw APIRefusal(status: .badRequest, message: "the query parameter app is missing or not an app id")
        }
        guard let user = query["user"].flatMap({ UserID(rawValue: String($0)) }) else {
            throw APIRefusal(status: .badRequest, message: "the query parameter user is missing or not a user id")
        }
        return try await store.history(of: AppUser(app: app, user: user))
    }
}

extension RegistrationRecord {
    fileprivate var json: JSONValue {
        [
            "device": .string(registration.device.uuidString.lowercased()),
            "provider": .string(registration.provider.rawValue),
            "environment": .string(registration.environment.rawValue),
            "token": .string(registration.token.masked),
            "registered_at": .string(RFC3339.string(from: registration.registeredAt.date)),
            "state": .string(state.rawValue),
            "reason": reason.map(JSONValue.string) ?? .null,
            "changed_at": .string(RFC3339.string(from: changedAt)),
        ]
    }
}
