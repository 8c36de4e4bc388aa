import HTTPAuth
import HTTPTypes
import Hummingbird
import NIOCore
import RegistryStore
import ServiceKit

/// The HTTP API, documented in `openapi.yaml`.
struct RegistryAPI: Sendable {
    let store: RegistrationStore
    /// The store of the operator API. It has its own pool, so that operators cannot block devices and stages. `nil`:
    /// `store`.
    var operators: RegistrationStore?
    let gate: BearerAuthenticator
    let keys: APIKeyAuthenticator
    /// Limits how many registrations a user begins and ends.
    var changes = RateLimiter<Caller>("changes", perMinute: 0)
    /// The configured apps, for which a backend may register devices; `nil`: any.
    var apps: ActiveApps?
    /// Publishes the first cursors of a campaign that a request starts.
    var publishCursors: CampaignRoutes.CursorPublisher = { _ in }
    var webPush = WebPushTerms()
    /// Whether an app lists this origin of web clients.
    var isWebOrigin: @Sendable (String) -> Bool = { _ in false }

    var router: Router<BasicRequestContext> {
        let router = routes
        router.addMethodNotAllowedRoutes()
        return router
    }

    /// The documented routes, without the 405 routes for other methods.
    var routes: Router<BasicRequestContext> {
        let devices = DeviceRegistrar(store: store)
        let operators = operators ?? store
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: RequestMetrics())
        router.add(middleware: CrossOriginMiddleware(isListed: isWebOrigin))
        RegistrationRoutes(devices: devices, gate: gate, changes: changes).add(to: router)
        InstallationRoutes(store: store, gate: gate, changes: changes, webPush: webPush).add(to: router)
        TopicRoutes(store: MembershipStore(store.database), gate: gate).add(to: router)
        OperatorRoutes(
            store: operators, keys: keys,
            registrationCounts: RegistrationCounts(RegistrationCountStore(operators.database))
        ).add(to: router)
        CampaignRoutes(store: CampaignStore(operators.database), keys: keys, apps: apps, publish: publishCursors)
            .add(to: router)
        BackendRoutes(devices: devices, keys: keys, apps: apps).add(to: router)
        router.addDescription(PackageResources.openapi_yaml)
        return router
    }
}
