import HTTPTypes
import Hummingbird
import PushProtocol

/// What the providers shall do, and what came of it.
extension ControlRoutes {
    func addOutcomeRoutes(to router: Router<BasicRequestContext>) {
        router.take("outcomes") { body, request in
            let scripts = try OutcomeScript.read(body)
            if let seed = try Self.seed(of: request) { simulator.world.outcomes.reseed(seed) }
            simulator.play(scripts)
            return scripts.count
        }
        router.forget("outcomes") { simulator.world.outcomes.removeAll() }
        router.get("faults") { request, _ in
            let outcomes = try Self.faults(request)
            return Response.json { writer in writer.array(outcomes) { $0.value($1) } }
        }
    }

    func addDisturbanceRoutes(to router: Router<BasicRequestContext>) {
        router.take("disturbances") { body, _ in
            let posted = try Disturbance.read(body)
            disturbances.post(posted)
            return posted.count
        }
        router.get("disturbances") { _, _ in
            Response.json { writer in
                writer.object { writer in
                    writer.name("disturbances")
                    disturbances.write(to: &writer)
                }
            }
        }
        router.forget("disturbances") { disturbances.removeAll() }
        router.take("handshakes") { body, _ in try simulator.world.handshakes.play(body) }
        router.forget("handshakes") { simulator.world.handshakes.removeAll() }
        router.post("limits") { request, _ in
            simulator.world.allowances.limits = try Limits(try await Router.body(of: request))
            return limits()
        }
        router.get("limits") { _, _ in limits() }
        router.forget("limits") { simulator.world.allowances.limits = Limits() }
        router.get("connections") { _, _ in Response.json { ports.write(to: &$0) } }
    }

    /// Everything a long run is judged by, in one answer; `?tokens=true` adds what each token got.
    func summary(_ request: Request) throws -> Response {
        var withTokens = false
        for (key, value) in request.uri.queryParameters {
            guard key == "tokens" else { throw ControlProblem("\(key) is unknown; known is tokens") }
            withTokens = try RequestQuery.flag(key, value)
        }
        let phones = withTokens ? simulator.log.phones : []
        return Response.json(
            JSONWriter.object { writer in
                writer.member("last", simulator.log.lastSequence)
                for party in Party.allCases {
                    writer.name(party.rawValue)
                    writer.object { writer in
                        simulator.log.totals(of: party).write(to: &writer)
                        guard withTokens else { return }
                        writer.name("tokens")
                        writer.object { writer in
                            for phone in phones where phone.id.party == party { phone.writeCounts(to: &writer) }
                        }
                    }
                }
                writer.name("connections")
                ports.write(to: &writer)
                writer.name("disturbances")
                disturbances.write(to: &writer)
            })
    }

    private func limits() -> Response { Response.json { simulator.world.allowances.limits.write(to: &$0) } }

    private static func seed(of request: Request) throws(ControlProblem) -> UInt64? {
        var seed: UInt64?
        for (key, value) in request.uri.queryParameters {
            guard key == "seed" else { throw ControlProblem("\(key) is unknown; known is seed") }
            guard let number = UInt64(value) else { throw ControlProblem("seed is not a whole number") }
            seed = number
        }
        return seed
    }

    private static func faults(_ request: Request) throws(ControlProblem) -> [JSONValue] {
        var parties = Party.allCases
        var share: Double?
        for (key, value) in request.uri.queryParameters {
            switch key {
            case "provider":
                guard let party = Party(rawValue: String(value)) else {
                    throw ControlProblem("provider is none of apns, fcm, oauth")
                }
                parties = [party]
            case "share":
                guard let number = Double(value), (0...1).contains(number) else {
                    throw ControlProblem("share is not a number from 0 to 1")
                }
                share = number
            default: throw ControlProblem("\(key) is unknown; known are provider, share")
            }
        }
        return parties.flatMap { FaultCatalogue.outcomes(of: $0, share: share) }
    }
}

extension Phone {
    fileprivate func writeCounts(to writer: inout JSONWriter) {
        writer.name(id.token)
        writer.object { writer in
            writer.member("delivered", delivered)
            writer.member("refused", refused)
        }
    }
}
