import HTTPTypes
import Hummingbird
import PushProtocol
import ServiceKit

/// The control port: what tests script and ask, and what people look at.
struct ControlRoutes: Sendable {
    let simulator: Simulator
    let readiness: Readiness
    var ports = ProviderPorts()
    var disturbances = Disturbances()
    /// Whether the phone wall lets the browser fetch the images that pushes name.
    var showsRemoteImages = false

    var router: Router<BasicRequestContext> {
        let router = Router()
        router.addMiddleware { ControlErrors() }
        for party in Party.allCases {
            router.get("\(party.rawValue)/requests") { request, _ in try requests(of: party, request) }
        }
        router.forget("requests") { simulator.forgetRequests() }
        router.get("summary") { request, _ in try summary(request) }
        addOutcomeRoutes(to: router)
        addDisturbanceRoutes(to: router)
        addTokenRoutes(to: router)
        addPhoneRoutes(to: router)
        wall.addRoutes(to: router)
        addHealthRoutes(to: router)
        return router
    }

    private func addTokenRoutes(to router: Router<BasicRequestContext>) {
        router.take("tokens") { body, _ in try simulator.world.registrations.register(body) }
        router.forget("tokens") { simulator.world.registrations.removeAll() }
        router.take("keys") { body, _ in try simulator.world.keys.take(body) }
        router.forget("access-tokens") { simulator.world.accessTokens.revokeAll() }
    }

    private var wall: WallRoutes { WallRoutes(wall: simulator.wall, showsRemoteImages: showsRemoteImages) }

    private func addPhoneRoutes(to router: Router<BasicRequestContext>) {
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

    private func requests(of party: Party, _ request: Request) throws -> Response {
        var query = try RequestQuery(request.uri.queryParameters)
        // An APNs token is logged in lower case.
        if party == .apns { query.filter.token = query.filter.token?.lowercased() }
        if query.countsOnly { return Response.json(try counts(of: party, query.filter)) }
        let found = simulator.log.requests(of: party, where: query.filter, since: query.since, limit: query.limit)
        return Response.json(
            JSONWriter.object { writer in
                writer.name("requests")
                writer.array(found) { $1.write(to: &$0) }
                writer.member("last", found.last?.sequence ?? query.since)
            })
    }

    private func counts(of party: Party, _ filter: LogFilter) throws(ControlProblem) -> [UInt8] {
        var others = filter
        others.token = nil
        guard others == LogFilter() else {
            throw ControlProblem("count goes with token alone: the log may have forgotten")
        }
        return JSONWriter.object { writer in
            if let token = filter.token {
                let phone = simulator.log.phone(Phone.ID(party: party, token: token))
                writer.member("count", (phone?.delivered ?? 0) + (phone?.refused ?? 0))
                writer.member("delivered", phone?.delivered ?? 0)
            } else {
                simulator.log.totals(of: party).write(to: &writer)
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
