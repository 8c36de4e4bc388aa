import HTTPAuth
import HTTPTypes
import Hummingbird

/// The HTTP API, as described in `openapi.yaml`.
struct PublishingAPI: Sendable {
    let callers: PublisherAuthenticator
    let delivery: EventDelivery
    let budget: ByteBudget
    /// The maximum body of a batch, in bytes.
    let batchLimit: Int

    var router: Router<BasicRequestContext> {
        let router = routes
        router.addMethodNotAllowedRoutes()
        return router
    }

    /// The routes, without the 405 routes for other methods.
    var routes: Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: RequestMetrics())
        EventRoutes(callers: callers, delivery: delivery, budget: budget, batchLimit: batchLimit).add(to: router)
        NotificationRoutes(callers: callers, delivery: delivery, budget: budget).add(to: router)
        router.addDescription(PackageResources.openapi_yaml)
        return router
    }
}
