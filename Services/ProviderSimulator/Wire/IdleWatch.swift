import HTTP2
import ServiceLifecycle

/// Ends connections that nobody used for as long as the limits allow, in each provider's words.
struct IdleWatch: Service {
    let allowances: Allowances
    let ports: ProviderPorts

    /// How often is looked: an idle end is late by this much at most.
    private static let pace = Duration.milliseconds(50)

    /// What was seen of a connection, and since when it has not changed.
    private struct Quiet {
        let requests: Int
        let since: ContinuousClock.Instant
    }

    func run() async {
        await cancelWhenGracefulShutdown {
            var seen: [ProviderPort: [Int: Quiet]] = [:]
            while (try? await Task.sleep(for: Self.pace, clock: .continuous)) != nil {
                let limits = allowances.limits
                for port in ProviderPort.allCases {
                    seen[port] = limits.idle(of: port).map { look(at: port, idle: $0, seen[port] ?? [:]) }
                }
            }
        }
    }

    /// Ends what was idle too long; returns what there is to remember.
    private func look(at port: ProviderPort, idle: Duration, _ seen: [Int: Quiet]) -> [Int: Quiet] {
        let now = ContinuousClock.now
        var current: [Int: Quiet] = [:]
        for connection in ports.connections(of: port) {
            let known = seen[connection.id]
            let isQuiet = connection.openStreams == 0 && known?.requests == connection.requests
            var since = isQuiet ? known?.since ?? now : now
            if isQuiet, now - since >= idle {
                ports.perform([.goAway(port.idleGoAway)], onConnection: connection.id, of: port)
                since = now
            }
            current[connection.id] = Quiet(requests: connection.requests, since: since)
        }
        return current
    }
}

extension Limits {
    fileprivate func idle(of port: ProviderPort) -> Duration? {
        switch port {
        case .apns: apnsIdle.map { .milliseconds($0) }
        case .google: fcmIdle.map { .milliseconds($0) }
        }
    }
}

extension ProviderPort {
    /// APNs gives a reason as JSON (push-protocols A.3), Google a plain word (B.4).
    fileprivate var idleGoAway: GoAway {
        switch self {
        case .apns: GoAway(lastStream: .included, debugData: APNsProvider.goAwayData(.idleTimeout))
        case .google: GoAway(lastStream: .included, debugData: Array("session_timed_out".utf8))
        }
    }
}
