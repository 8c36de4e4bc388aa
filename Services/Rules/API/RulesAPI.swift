import DecisionLog
import HTTPAuth
import HTTPTypes
import Hummingbird
import NIOCore
import Postgres
import PushProtocol

/// The HTTP API of rules, as described in `openapi.yaml`.
struct RulesAPI: Sendable {
    let pool: PostgresPool
    /// The pool of the operator routes. It is separate, so that their statements take no connection from users and
    /// stages.
    let operators: PostgresPool
    let currentRules: CurrentRules
    let gate: BearerAuthenticator
    let keys: APIKeyAuthenticator
    let inboxFeed: InboxFeed
    /// The time that processes share (``DatabaseClock``).
    let now: @Sendable () async throws -> Timestamp
    /// Reports receipts to upstreams.
    var receiptReporter: ReceiptReporter?
    /// Whether an app lists this origin of web clients.
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
        PreferenceRoutes(
            store: PreferenceStore(pool: pool), currentRules: currentRules, gate: gate, keys: keys, now: now
        ).add(to: router)
        InboxRoutes(store: InboxStore(pool: pool), currentRules: currentRules, gate: gate, now: now).add(to: router)
        StreamRoutes(inboxFeed: inboxFeed, currentRules: currentRules, gate: gate).add(to: router)
        PresenceRoutes(
            presence: PresenceStore(pool: pool), receipts: ReceiptStore(pool: pool),
            currentRules: currentRules, reporter: receiptReporter, gate: gate, now: now
        ).add(to: router)
        OperatorRoutes(
            explanations: ExplanationStore(operators), revocations: RevocationLog(operators),
            counts: CountStore(operators), histories: UserHistoryStore(operators), keys: keys, now: now
        ).add(to: router)
        RevocationRoutes(revocations: RevocationLog(operators), keys: keys).add(to: router)
        router.addDescription(PackageResources.openapi_yaml)
        return router
    }
}
