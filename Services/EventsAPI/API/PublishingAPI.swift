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
    var matrix = MatrixRoutes.off
    let testPushes: TestPushRoutes
    /// Whether an app lists an origin of web clients. Only ``testPushes`` are for them.
    var isWebOrigin: @Sendable (String) -> Bool = { _ in false }

    var router: Router<BasicRequestContext> {
        let router = routes
        router.addMethodNotAllowedRoutes()
        return router
    }

    /// The routes, without the 405 routes for other methods.
    var routes: Router<BasicRequestContext> {
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: RequestMetrics())
        router.add(middleware: CrossOriginMiddleware(isListed: isWebOrigin))
        let frame = PublishingFrame(callers: callers, delivery: delivery, budget: budget)
        EventRoutes(frame: frame, batchLimit: batchLimit).add(to: router)
        NotificationRoutes(frame: frame).add(to: router)
        testPushes.add(to: router)
        matrix.add(to: router)
        router.addDescription(PackageResources.openapi_yaml)
        return router
    }
}
