import HTTPAuth
import Hummingbird
import PushProtocol
import RegistryStore
import ServiceKit

/// Endpoints by which a backend registers devices of its users, with an API key for `devices:register`. The query names
/// the app and the user.
struct BackendRoutes: Sendable {
    let devices: DeviceRegistrar
    let keys: APIKeyAuthenticator
    let apps: ActiveApps?

    func add(to router: Router<BasicRequestContext>) {
        router.post("v1/operator/devices") { request, context in
            await answer(request, context) { body, owner, installation in
                [
                    "registered": .bool(true),
                    "new": .bool(try await devices.register(body, of: owner, on: installation)),
                ]
            }
        }
        router.post("v1/operator/devices/unregister") { request, context in
            await answer(request, context) { body, owner, installation in
                ["unregistered": .bool(try await devices.unregister(body, of: owner, on: installation) > 0)]
            }
        }
    }

    private func answer(
        _ request: Request, _ context: BasicRequestContext,
        carryOut: (RegistrationBody, AppUser, InstallationID?) async throws -> JSONValue
    ) async -> Response {
        await .answering(context) {
            let caller = try await keys.caller(request.bearerToken, to: .registerDevices)
            let query = QueryParameters(request)
            let owner = AppUser(app: try query.app(), user: try query.user())
            try keys.authorize(caller, to: .registerDevices, of: owner.app)
            if let apps, !apps.contains(owner.app) {
                throw APIError(
                    status: .notFound, message: "the query parameter app names no configured app; see the apps file")
            }
            let body = try await request.registration()
            return .json(.ok, try await carryOut(body, owner, try request.installation()))
        }
    }
}
