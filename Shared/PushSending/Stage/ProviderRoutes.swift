package import Logging
package import Providers
package import PushProtocol
import Metrics
import Synchronization

/// The configured routes of one sender, each with its gateway and circuit breaker.
///
/// Routes that are not in here are unconfigured. A route stays until the process ends.
package final class ProviderRoutes: Sendable {
    /// A gateway with the circuit breaker of its route.
    struct GuardedGateway: Sendable {
        let gateway: any PushGateway
        let breaker: RouteCircuitBreaker
    }

    /// The input of ``RouteSupervisor``.
    enum RouteEvent: Sendable {
        case opened(ProviderRoute, pause: Duration)
        case closed(ProviderRoute)
        case pauseOver(AppID)
        case credentialChanged(ProviderRoute)
    }

    let events: AsyncStream<RouteEvent>
    private let continuation: AsyncStream<RouteEvent>.Continuation
    private let guarded = Mutex<[ProviderRoute: GuardedGateway]>([:])
    let provider: Provider
    let clock: SenderClock
    private let logger: Logger

    /// - Parameters:
    ///   - gateways: the gateway of each configured route.
    ///   - provider: labels the metrics of routes.
    ///   - logger: logs when routes pause and resume.
    package init(
        _ gateways: [ProviderRoute: any PushGateway], provider: Provider, clock: SenderClock = .system, logger: Logger
    ) {
        let (events, continuation) = AsyncStream.makeStream(of: RouteEvent.self)
        self.events = events
        self.continuation = continuation
        self.provider = provider
        self.clock = clock
        self.logger = logger
        add(gateways)
    }

    /// Adds the routes of an app, whose circuit breakers are closed. Ignores known routes.
    package func add(_ gateways: [ProviderRoute: any PushGateway]) {
        for (route, gateway) in gateways {
            let new = GuardedGateway(gateway: gateway, breaker: breaker(of: route))
            guarded.withLock { guarded in
                if guarded[route] == nil { guarded[route] = new }
            }
        }
    }

    private func breaker(of route: ProviderRoute) -> RouteCircuitBreaker {
        let gauge = RouteOpenGauge(route, provider)
        gauge.record(isOpen: true)
        return RouteCircuitBreaker(
            clock: clock,
            thirdPartyChanged: { [logger] transition in
                logger.reportThirdParty(transition, of: route)
                Gauge(label: "heliograph_push_third_party_open", dimensions: gauge.dimensions)
                    .record(transition == .closed ? 1 : 0)
            }
        ) { [logger, continuation] transition in
            gauge.record(isOpen: transition == .closed)
            logger.report(transition, of: route)
            switch transition {
            case .opened(_, let pause): continuation.yield(.opened(route, pause: pause))
            case .closed: continuation.yield(.closed(route))
            }
        }
    }

    private var routes: [ProviderRoute: GuardedGateway] { guarded.withLock { $0 } }

    func send(_ event: RouteEvent) { continuation.yield(event) }

    subscript(route: ProviderRoute) -> GuardedGateway? { guarded.withLock { $0[route] } }

    package var all: [ProviderRoute] { routes.keys.sorted { ($0.app, $0.environment) < ($1.app, $1.environment) } }

    /// Why a route's circuit breaker is open; `nil` while it is closed, and for an unconfigured route.
    package func openCause(of route: ProviderRoute) -> CircuitBreaker.OpenCause? { self[route]?.breaker.openCause }

    /// Why the provider rejects the key that it holds for a third party; `nil` while it does not.
    package func thirdPartyOpenCause(of route: ProviderRoute) -> CircuitBreaker.OpenCause? {
        self[route]?.breaker.thirdParty.openCause
    }

    /// Opens the circuit breaker of a route whose credential is known to be unusable.
    package func trip(_ route: ProviderRoute, misconfigured reason: String) {
        self[route]?.breaker.record(.misconfigured(reason: reason))
    }

    /// Ends the pause of a route and probes it at once, after a change of its credential.
    package func probeAtOnce(_ route: ProviderRoute) {
        self[route]?.breaker.endPause()
        send(.credentialChanged(route))
    }

    /// Restarts the quota's ramp before a probe of `route`, unless another route of the quota is open here.
    ///
    /// A process without consumers is not counted among those that share the quota. Called before other pushes are
    /// admitted.
    func restartRamp(_ route: ProviderRoute) {
        guard let quota = self[route]?.gateway.quota else { return }
        let hasPaused = routes.allSatisfy { other, guarded in
            other == route || guarded.gateway.quota !== quota || guarded.breaker.openCause != nil
        }
        if hasPaused { quota.restartRamp() }
    }

    /// Whether all routes of `app` are paused, so that consuming its queues is pointless.
    func isBlocked(_ app: AppID) -> Bool {
        routes.allSatisfy { route, guarded in route.app != app || guarded.breaker.openCause != nil }
    }
}

extension Logger {
    fileprivate func reportThirdParty(_ transition: CircuitBreaker.Transition, of route: ProviderRoute) {
        let metadata: Metadata = ["app": "\(route.app)", "environment": "\(route.environment.rawValue)"]
        switch transition {
        case .closed:
            notice("Provider accepts its Apple or browser key again; resuming its pushes", metadata: metadata)
        case .opened(let openCause, let pause):
            error(
                "Provider's Apple or browser key rejected; its pushes wait. Upload a new key in the provider's console",
                metadata: metadata.merging(["reason": "\(openCause.reason)", "pause": "\(pause)"]) { $1 })
        }
    }

    fileprivate func report(_ transition: CircuitBreaker.Transition, of route: ProviderRoute) {
        let metadata: Metadata = ["app": "\(route.app)", "environment": "\(route.environment.rawValue)"]
        switch transition {
        case .closed: notice("Provider answers again; route resumed", metadata: metadata)
        case .opened(.unavailable(let reason), let pause):
            warning(
                "Provider does not answer; route paused, its queue is kept",
                metadata: metadata.merging(["reason": "\(reason)", "pause": "\(pause)"]) { $1 })
        case .opened(.misconfigured(let reason), let pause):
            error(
                "Credential or configuration rejected; route paused, its queue is kept. Fix it to resume",
                metadata: metadata.merging(["reason": "\(reason)", "pause": "\(pause)"]) { $1 })
        }
    }
}
