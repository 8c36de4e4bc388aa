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
        carryOut: @escaping (RegistrationBody, AppUser, InstallationID?) async throws -> JSONValue
    ) async -> Response {
        await keys.answer(request, context, .registerDevices) { query in
            let owner = AppUser(app: try query.app(), user: try query.user())
            func answer() async throws -> JSONValue {
                if let apps, !apps.contains(owner.app) { throw APIError.unknownApp }
                return try await carryOut(try await request.registration(), owner, try request.installation())
            }
            return (owner.app, answer)
        }
    }
}
