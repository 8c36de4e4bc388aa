import Crypto
import FoundationEssentials
import Hummingbird
import Logging
import PushProtocol

/// What an operator may ask, with `Authorization: Bearer <operator key>`: `GET /v1/operator/devices?app=…&user=…`, where
/// tokens are masked, and `DELETE` on the same to erase the user.
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
            try await answer(request, context) { user in
                ["devices": .array(try await store.history(of: user).map(\.json))]
            }
        }
        router.delete("v1/operator/devices") { request, context in
            try await answer(request, context) { user in ["erased": .int(Int64(try await store.erase(user)))] }
        }
    }

    private func answer(
        _ request: Request, _ context: BasicRequestContext, about: (AppUser) async throws -> JSONValue
    ) async throws -> Response {
        do {
            try authorize(request)
            return Response.json(.ok, try await about(try user(of: request)))
        } catch let refusal as APIRefusal {
            return Response.json(refusal.status, ["error": .string(refusal.message)])
        } catch {
            context.logger.error("an operator could not be answered", metadata: ["error": "\(error)"])
            return Response.json(.serviceUnavailable, ["error": "the registry's database is away; try again"])
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

    private func user(of request: Request) throws(APIRefusal) -> AppUser {
        let query = request.uri.queryParameters
        guard let app = query["app"].flatMap({ AppID(rawValue: String($0)) }) else {
            throw APIRefusal(status: .badRequest, message: "the query parameter app is missing or not an app id")
        }
        guard let user = query["user"].flatMap({ UserID(rawValue: String($0)) }) else {
            throw APIRefusal(status: .badRequest, message: "the query parameter user is missing or not a user id")
        }
        return AppUser(app: app, user: user)
    }
}

extension RegistrationRecord {
    fileprivate var json: JSONValue {
        [
            "device": .string(registration.device.uuidString.lowercased()),
            "provider": .string(registration.provider.rawValue),
            "environment": .string(registration.environment.rawValue),
            "kind": .string(registration.kind.rawValue),
            "token": state == .erased ? .null : .string(registration.token.masked),
            "installation": .optional(registration.installation?.rawValue),
            "scope": .optional(scope),
            "topic": .optional(registration.topic),
            "locale": .optional(locale),
            "time_zone": .optional(timeZone),
            "app_version": .optional(appVersion),
            "registered_at": .string(RFC3339.string(from: registration.registeredAt.date)),
            "stale_since": .optional(staleSince.map(RFC3339.string(from:))),
            "state": .string(state.rawValue),
            "reason": .optional(reason),
            "changed_at": .string(RFC3339.string(from: changedAt)),
        ]
    }
}

extension JSONValue {
    static func optional(_ text: String?) -> JSONValue { text.map(JSONValue.string) ?? .null }
}
