import PushProtocol

/// The simulator without sockets: takes requests, returns wire actions and logs both. Safe from any thread.
final class Simulator: Sendable {
    let state: SimulatorState
    let log: RequestLog
    let wall = PhoneWall()
    private let production: APNsProvider
    private let sandbox: APNsProvider
    private let fcm: FCMProvider
    private let webPush: WebPushProvider

    init(state: SimulatorState, log: RequestLog = RequestLog()) {
        self.state = state
        self.log = log
        production = APNsProvider(.production, in: state)
        sandbox = APNsProvider(.development, in: state)
        fcm = FCMProvider(in: state)
        webPush = WebPushProvider(in: state)
    }

    /// Handles a request to the APNs port of `environment`.
    func respondAPNs(_ request: ProviderRequest, in environment: ProviderEnvironment) -> [WireAction] {
        let response = apns(environment).answer(request)
        wall.record(log.append(request, response, provider: .apns, environment: environment))
        return response.actions
    }

    /// Clears the request log and the phone wall.
    func forgetRequests() {
        log.removeAll()
        wall.removeAll()
    }

    func apnsConnectionClosed(_ number: Int, in environment: ProviderEnvironment) {
        apns(environment).connectionClosed(number)
    }

    /// Handles a request to FCM or the token endpoint.
    func respondGoogle(_ request: ProviderRequest) -> [WireAction] {
        let response = fcm.answer(request)
        let provider: ProviderKind = request.path == TokenEndpoint.path ? .oauth : .fcm
        wall.record(log.append(request, response, provider: provider, environment: .production))
        return response.actions
    }

    /// Handles a message to the push service of browsers.
    func respondWebPush(_ request: ProviderRequest) -> [WireAction] {
        let response = webPush.answer(request)
        wall.record(log.append(request, response, provider: .webpush, environment: .production))
        return response.actions
    }

    /// Adds posted scripts. The outcomes of one scope replace its remaining script.
    func play(_ scripts: [OutcomeScript]) {
        for (key, scripts) in Dictionary(grouping: scripts, by: \.key) {
            state.outcomes.script(scripts.map(\.outcome), for: key)
        }
    }

    /// Applies the part of a fault that is not about connections: revoking access tokens.
    func apply(_ connectionFault: ConnectionFault) {
        if connectionFault.revokesAccessTokens { state.accessTokens.revokeAll() }
    }

    private func apns(_ environment: ProviderEnvironment) -> APNsProvider {
        switch environment {
        case .production: production
        case .development: sandbox
        }
    }
}
