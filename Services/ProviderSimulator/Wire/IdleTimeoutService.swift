import HTTP2Server
import ServiceLifecycle

/// Closes connections that were idle for the configured time, with the provider's GOAWAY.
struct IdleTimeoutService: Service {
    let rateLimits: RateLimits
    let ports: ProviderPorts

    /// The check interval: a connection is closed at most this much late.
    private static let pace = Duration.milliseconds(50)

    /// The request count of a connection, and since when it is unchanged.
    private struct ObservedConnection {
        let requests: Int
        let since: ContinuousClock.Instant
    }

    func run() async {
        await cancelWhenGracefulShutdown {
            var seen: [ProviderPort: [Int: ObservedConnection]] = [:]
            while (try? await Task.sleep(for: Self.pace, clock: .continuous)) != nil {
                let limits = rateLimits.limits
                for port in ProviderPort.allCases {
                    seen[port] = limits.idle(of: port).map { endIdleConnections(at: port, idle: $0, seen[port] ?? [:]) }
                }
            }
        }
    }

    /// Closes idle connections of a port and returns the updated observations.
    private func endIdleConnections(at port: ProviderPort, idle: Duration, _ seen: [Int: ObservedConnection]) -> [Int:
        ObservedConnection]
    {
        let now = ContinuousClock.now
        var current: [Int: ObservedConnection] = [:]
        for connection in ports.connections(of: port) {
            let known = seen[connection.id]
            let isIdle = connection.openStreams == 0 && known?.requests == connection.requests
            var since = isIdle ? known?.since ?? now : now
            if isIdle, now - since >= idle {
                ports.perform([.goAway(port.idleGoAway)], onConnection: connection.id, of: port)
                since = now
            }
            current[connection.id] = ObservedConnection(requests: connection.requests, since: since)
        }
        return current
    }
}

extension LimitSettings {
    fileprivate func idle(of port: ProviderPort) -> Duration? {
        switch port {
        case .apns: apnsIdle.map { .milliseconds($0) }
        case .google: fcmIdle.map { .milliseconds($0) }
        case .webPush: webPushIdle.map { .milliseconds($0) }
        }
    }
}

extension ProviderPort {
    /// APNs sends a JSON reason, Google a plain text (ProviderFacts.md §A.3, §B.4). A push service of browsers sends nothing.
    fileprivate var idleGoAway: GoAway {
        switch self {
        case .apns: GoAway(lastStream: .included, debugData: APNsProvider.goAwayData(.idleTimeout))
        case .google: GoAway(lastStream: .included, debugData: Array("session_timed_out".utf8))
        case .webPush: GoAway(lastStream: .included)
        }
    }
}
