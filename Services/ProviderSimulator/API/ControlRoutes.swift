import HTTPTypes
import Hummingbird
import PushProtocol
import ServiceKit

/// The control port: scripts the providers, reports requests and serves the phone wall.
struct ControlRoutes: Sendable {
    let simulator: Simulator
    let readiness: Readiness
    var ports = ProviderPorts()
    var faultInjection = FaultInjection()
    /// Whether the phone wall lets the browser fetch images that pushes link to.
    var showsRemoteImages = false

    var router: Router<BasicRequestContext> {
        let router = Router()
        router.addMiddleware { ControlErrorMiddleware() }
        for provider in ProviderKind.allCases {
            router.get("\(provider.rawValue)/requests") { request, _ in try requests(of: provider, request) }
        }
        router.deleteAll("requests") { simulator.forgetRequests() }
        router.get("summary") { request, _ in try summary(request) }
        addOutcomeRoutes(to: router)
        addFaultRoutes(to: router)
        addTokenRoutes(to: router)
        addSubscriptionRoutes(to: router)
        addPhoneRoutes(to: router)
        wall.addRoutes(to: router)
        addHealthRoutes(to: router)
        return router
    }

    private func addTokenRoutes(to router: Router<BasicRequestContext>) {
        router.postJSON("tokens") { body, _ in try simulator.state.pinnedTokens.register(body) }
        router.deleteAll("tokens") { simulator.state.pinnedTokens.removeAll() }
        router.postJSON("keys") { body, _ in try simulator.state.keys.add(body) }
        router.deleteAll("access-tokens") { simulator.state.accessTokens.revokeAll() }
    }

    private func addSubscriptionRoutes(to router: Router<BasicRequestContext>) {
        router.post("subscriptions") { request, _ in
            let state = simulator.state
            let subscription = try state.subscriptions.subscribe(
                try await Router.body(of: request), apps: state.apps, origin: state.webPushOrigin, at: .now)
            return Response.json { subscription.write(to: &$0) }
        }
        router.delete("subscriptions") { request, _ in
            let query = try SubscriptionQuery(request.uri.queryParameters)
            guard simulator.state.subscriptions.end(query.token, as: query.ending) else {
                throw ControlRequestError("token is no subscription")
            }
            return Response(status: .noContent)
        }
    }

    private var wall: WallRoutes { WallRoutes(wall: simulator.wall, showsRemoteImages: showsRemoteImages) }

    private func addPhoneRoutes(to router: Router<BasicRequestContext>) {
        router.get("shown") { request, _ in
            let query = request.uri.queryParameters
            guard let provider = query["provider"].flatMap({ ProviderKind(rawValue: String($0)) }), provider != .oauth,
                let token = query["token"].map(String.init)
            else { throw ControlRequestError("expected ?provider=apns, fcm or webpush, and &token=") }
            // APNs tokens are logged in lower case.
            let id = Phone.ID(provider: provider, token: provider == .apns ? token.lowercased() : token)
            // A token without pushes is a phone that shows nothing.
            let phone = simulator.wall.phone(id) ?? WallPhone(id)
            return Response.json(JSONWriter.object { phone.writeShown(to: &$0) })
        }
        router.get("devices") { _, _ in
            let phones = simulator.log.phones
            return Response.json(
                JSONWriter.object { writer in
                    writer.name("devices")
                    writer.array(phones) { $1.write(to: &$0) }
                })
        }
    }

    private func addHealthRoutes(to router: Router<BasicRequestContext>) {
        router.get("health/live") { _, _ in Response.json(JSONWriter.object { $0.value("live", true) }) }
        router.get("health/ready") { _, _ in
            let isReady = readiness.report.isReady
            return Response.json(
                JSONWriter.object { $0.value("ready", .bool(isReady)) },
                status: isReady ? .ok : .serviceUnavailable)
        }
    }

    private func requests(of provider: ProviderKind, _ request: Request) throws -> Response {
        var query = try RequestQuery(request.uri.queryParameters)
        // APNs tokens are logged in lower case.
        if provider == .apns { query.filter.token = query.filter.token?.lowercased() }
        if query.countsOnly { return Response.json(try counts(of: provider, query.filter)) }
        let found = simulator.log.requests(of: provider, where: query.filter, since: query.since, limit: query.limit)
        return Response.json(
            JSONWriter.object { writer in
                writer.name("requests")
                writer.array(found) { $1.write(to: &$0) }
                writer.member("last", found.last?.sequence ?? query.since)
            })
    }

    private func counts(of provider: ProviderKind, _ filter: LogFilter) throws(ControlRequestError) -> [UInt8] {
        var others = filter
        others.token = nil
        guard others == LogFilter() else {
            throw ControlRequestError("count combines with token only: the log may have dropped requests")
        }
        return JSONWriter.object { writer in
            if let token = filter.token {
                let phone = simulator.log.phone(Phone.ID(provider: provider, token: token))
                writer.member("count", (phone?.delivered ?? 0) + (phone?.refused ?? 0))
                writer.member("delivered", phone?.delivered ?? 0)
            } else {
                simulator.log.totals(of: provider).write(to: &writer)
            }
        }
    }
}

extension JSONWriter {
    mutating func value(_ name: String, _ value: JSONValue) {
        self.name(name)
        self.value(value)
    }
}
