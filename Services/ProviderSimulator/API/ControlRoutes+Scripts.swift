import HTTPTypes
import Hummingbird
import PushProtocol

/// Routes that script outcomes, inject faults, set limits and report totals.
extension ControlRoutes {
    func addOutcomeRoutes(to router: Router<BasicRequestContext>) {
        router.postJSON("outcomes") { body, request in
            let scripts = try OutcomeScript.read(body)
            if let seed = try Self.seed(of: request) { simulator.state.outcomes.reseed(seed) }
            simulator.play(scripts)
            return scripts.count
        }
        router.deleteAll("outcomes") { simulator.state.outcomes.removeAll() }
        router.get("faults") { request, _ in
            let outcomes = try Self.faults(request)
            return Response.json { writer in writer.array(outcomes) { $0.value($1) } }
        }
    }

    func addFaultRoutes(to router: Router<BasicRequestContext>) {
        router.postJSON("disturbances") { body, _ in
            let posted = try ConnectionFault.read(body)
            faultInjection.post(posted)
            return posted.count
        }
        router.get("disturbances") { _, _ in
            Response.json { writer in
                writer.object { writer in
                    writer.name("disturbances")
                    faultInjection.write(to: &writer)
                }
            }
        }
        router.deleteAll("disturbances") { faultInjection.removeAll() }
        router.postJSON("handshakes") { body, _ in try simulator.state.handshakes.play(body) }
        router.deleteAll("handshakes") { simulator.state.handshakes.removeAll() }
        router.post("limits") { request, _ in
            simulator.state.rateLimits.limits = try LimitSettings(try await Router.body(of: request))
            return limits()
        }
        router.get("limits") { _, _ in limits() }
        router.deleteAll("limits") { simulator.state.rateLimits.limits = LimitSettings() }
        router.get("connections") { _, _ in Response.json { ports.write(to: &$0) } }
    }

    /// The totals of a run; `?tokens=true` adds the counts of each token.
    func summary(_ request: Request) throws -> Response {
        var withTokens = false
        for (key, value) in request.uri.queryParameters {
            guard key == "tokens" else { throw ControlRequestError("\(key) is unknown; known is tokens") }
            withTokens = try RequestQuery.flag(key, value)
        }
        let phones = withTokens ? simulator.log.phones : []
        return Response.json(
            JSONWriter.object { writer in
                writer.member("last", simulator.log.lastSequence)
                for provider in ProviderKind.allCases {
                    writer.name(provider.rawValue)
                    writer.object { writer in
                        simulator.log.totals(of: provider).write(to: &writer)
                        guard withTokens else { return }
                        writer.name("tokens")
                        writer.object { writer in
                            for phone in phones where phone.id.provider == provider { phone.writeCounts(to: &writer) }
                        }
                    }
                }
                writer.name("connections")
                ports.write(to: &writer)
                writer.name("disturbances")
                faultInjection.write(to: &writer)
            })
    }

    private func limits() -> Response { Response.json { simulator.state.rateLimits.limits.write(to: &$0) } }

    private static func seed(of request: Request) throws(ControlRequestError) -> UInt64? {
        var seed: UInt64?
        for (key, value) in request.uri.queryParameters {
            guard key == "seed" else { throw ControlRequestError("\(key) is unknown; known is seed") }
            guard let number = UInt64(value) else { throw ControlRequestError("seed is not a whole number") }
            seed = number
        }
        return seed
    }

    private static func faults(_ request: Request) throws(ControlRequestError) -> [JSONValue] {
        var providers = ProviderKind.allCases
        var share: Double?
        for (key, value) in request.uri.queryParameters {
            switch key {
            case "provider":
                guard let provider = ProviderKind(rawValue: String(value)) else {
                    let known = ProviderKind.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ControlRequestError("provider is none of \(known)")
                }
                providers = [provider]
            case "share":
                guard let number = Double(value), (0...1).contains(number) else {
                    throw ControlRequestError("share is not a number from 0 to 1")
                }
                share = number
            default: throw ControlRequestError("\(key) is unknown; known are provider, share")
            }
        }
        return providers.flatMap { FaultCatalogue.outcomes(of: $0, share: share) }
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
