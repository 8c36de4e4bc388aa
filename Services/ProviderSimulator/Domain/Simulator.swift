import PushProtocol

/// The simulator without its sockets: requests in, wire acts out, everything on record. Safe from any thread.
final class Simulator: Sendable {
    let world: World
    let log: RequestLog
    let wall = PhoneWall()
    private let production: APNsProvider
    private let sandbox: APNsProvider
    private let fcm: FCMProvider

    init(world: World, log: RequestLog = RequestLog()) {
        self.world = world
        self.log = log
        production = APNsProvider(.production, in: world)
        sandbox = APNsProvider(.development, in: world)
        fcm = FCMProvider(in: world)
    }

    /// What APNs does about a request that came to the port of `environment`.
    func answerAPNs(_ request: ProviderRequest, in environment: ProviderEnvironment) -> [Act] {
        let verdict = apns(environment).answer(request)
        wall.record(log.append(request, verdict, party: .apns, environment: environment))
        return verdict.acts
    }

    /// Forgets what came and who got it.
    func forgetRequests() {
        log.removeAll()
        wall.removeAll()
    }

    func apnsConnectionClosed(_ number: Int, in environment: ProviderEnvironment) {
        apns(environment).connectionClosed(number)
    }

    /// What Google does about a request: FCM, or the token endpoint.
    func answerGoogle(_ request: ProviderRequest) -> [Act] {
        let verdict = fcm.answer(request)
        let party: Party = request.path == TokenEndpoint.path ? .oauth : .fcm
        wall.record(log.append(request, verdict, party: party, environment: .production))
        return verdict.acts
    }

    /// Scripts what was posted: the outcomes for one scope, in their order, replace what was left for it.
    func play(_ scripts: [OutcomeScript]) {
        struct Part: Hashable {
            let party: Party
            let scope: OutcomeBook.Scope
        }
        let parts = Dictionary(grouping: scripts) { Part(party: $0.party, scope: $0.scope) }
        for (part, scripts) in parts { world.outcomes.script(scripts.map(\.outcome), for: part.party, part.scope) }
    }

    /// Does at once what belongs to a disturbance beyond the connections.
    func disturb(_ disturbance: Disturbance) {
        if disturbance.revokesAccessTokens { world.accessTokens.revokeAll() }
    }

    private func apns(_ environment: ProviderEnvironment) -> APNsProvider {
        switch environment {
        case .production: production
        case .development: sandbox
        }
    }
}
