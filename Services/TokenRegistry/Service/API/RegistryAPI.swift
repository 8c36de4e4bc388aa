import HTTPAuth
import HTTPTypes
import Hummingbird
import NIOCore
import RegistryStore
import ServiceKit

/// The HTTP API, documented in `openapi.yaml`.
enum RegistryAPI {
    /// - Parameters:
    ///   - operators: the store of the operator API. It has its own pool, so that operators cannot block devices and
    ///     stages. `nil`: `store`.
    ///   - changes: limits how many registrations a user begins and ends.
    ///   - apps: the configured apps, for which a backend may register devices; `nil`: any.
    ///   - isWebOrigin: whether an app lists this origin of web clients.
    static func router(
        store: RegistrationStore, operators: RegistrationStore? = nil, gate: BearerAuthenticator,
        keys: APIKeyAuthenticator,
        changes: RateLimiter<Caller> = RateLimiter("changes", perMinute: 0), apps: ActiveApps? = nil,
        isWebOrigin: @escaping @Sendable (String) -> Bool = { _ in false }
    ) -> Router<BasicRequestContext> {
        let router = routes(
            store: store, operators: operators, gate: gate, keys: keys, changes: changes, apps: apps,
            isWebOrigin: isWebOrigin)
        router.addMethodNotAllowedRoutes()
        return router
    }

    /// The documented routes, without the 405 routes for other methods.
    static func routes(
        store: RegistrationStore, operators: RegistrationStore? = nil, gate: BearerAuthenticator,
        keys: APIKeyAuthenticator,
        changes: RateLimiter<Caller> = RateLimiter("changes", perMinute: 0), apps: ActiveApps? = nil,
        isWebOrigin: @escaping @Sendable (String) -> Bool = { _ in false }
    ) -> Router<BasicRequestContext> {
        let devices = DeviceRegistrar(store: store)
        let operators = operators ?? store
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: RequestMetrics())
        router.add(middleware: CrossOriginMiddleware(isListed: isWebOrigin))
        RegistrationRoutes(devices: devices, gate: gate, changes: changes).add(to: router)
        InstallationRoutes(store: store, gate: gate, changes: changes).add(to: router)
        TopicRoutes(store: MembershipStore(store.database), gate: gate).add(to: router)
        OperatorRoutes(
            store: operators, keys: keys,
            registrationCounts: RegistrationCounts(RegistrationCountStore(operators.database))
        ).add(to: router)
        BackendRoutes(devices: devices, keys: keys, apps: apps).add(to: router)
        router.addDescription(PackageResources.openapi_yaml)
        return router
    }
}
