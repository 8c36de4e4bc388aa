import Providers
import PushProtocol

extension ProviderRoutes {
    /// Probes a route whose pause is over, if no push has probed it: an idle route would stay paused forever.
    ///
    /// Does not probe during a spike of bad tokens, which only pushes to accepted tokens can end.
    ///
    /// - Returns: Whether the probe was inconclusive, so that another one is needed.
    func probe(_ route: ProviderRoute) async -> Bool {
        guard let guarded = self[route], guarded.breaker.claimProbe() else { return false }
        var observation = CircuitBreaker.Observation.nothing
        defer { guarded.breaker.recordProbe(observation) }
        restartRamp(route)
        if let quota = guarded.gateway.quota {
            guard case .granted = await quota.admit(1, .interactive, until: quota.probeDeadline) else { return true }
        }
        let push = Push.probe(of: route, provider: provider, now: clock.now())
        let requests = push.targets.map { TargetRequest(of: 0, to: $0) }
        let results = await guarded.gateway.send(requests, of: [guarded.gateway.render(push)], in: push.lane)
        observation = SendAttempt(requests: requests, results: results).observation
        return observation == .nothing
    }
}
