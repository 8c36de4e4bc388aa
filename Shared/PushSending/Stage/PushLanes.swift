package import PushProtocol
package import Logging
import Metrics

/// The configured lanes of one sender: each app's gateway on each environment, with the breaker in front of it.
///
/// What is not in here is unconfigured. Lanes are fixed for the life of the process.
package final class PushLanes: Sendable {
    struct Lane: Sendable {
        let gateway: any PushGateway
        let gate: LaneGate
    }

    /// What the one ``LaneSupervisor`` acts on.
    enum Signal: Sendable {
        case opened(LaneKey, pause: Duration)
        case closed(LaneKey)
        case pauseOver(AppID)
        /// What held the lane up may have been mended.
        case mended(LaneKey)
    }

    let signals: AsyncStream<Signal>
    private let signal: AsyncStream<Signal>.Continuation
    private let lanes: [LaneKey: Lane]
    let provider: Provider
    let clock: SenderClock

    /// `provider` labels the metrics `heliograph_lane_open` and `heliograph_push_third_party_open`.
    package init(
        _ gateways: [LaneKey: any PushGateway], provider: Provider, clock: SenderClock = .system, logger: Logger
    ) {
        let (signals, signal) = AsyncStream.makeStream(of: Signal.self)
        self.signals = signals
        self.signal = signal
        self.provider = provider
        self.clock = clock
        lanes = Dictionary(
            uniqueKeysWithValues: gateways.map { key, gateway in
                let gauge = Gauge(
                    label: "heliograph_lane_open",
                    dimensions: [
                        ("provider", provider.rawValue), ("app", key.app.rawValue),
                        ("environment", key.environment.rawValue),
                    ])
                gauge.record(1)
                let gate = LaneGate(
                    clock: clock,
                    thirdPartyChanged: { change in
                        logger.reportThirdParty(change, of: key)
                        Gauge(label: "heliograph_push_third_party_open", dimensions: gauge.dimensions)
                            .record(change == .closed ? 1 : 0)
                    }
                ) { change in
                    gauge.record(change == .closed ? 1 : 0)
                    logger.report(change, of: key)
                    switch change {
                    case .opened(_, let pause): signal.yield(.opened(key, pause: pause))
                    case .closed: signal.yield(.closed(key))
                    }
                }
                return (key, Lane(gateway: gateway, gate: gate))
            })
    }

    func send(_ signal: Signal) { self.signal.yield(signal) }

    subscript(key: LaneKey) -> Lane? { lanes[key] }

    package var keys: [LaneKey] { lanes.keys.sorted { ($0.app, $0.environment) < ($1.app, $1.environment) } }

    /// What holds a lane up; `nil` while it works and for a lane that is not configured.
    package func trouble(of key: LaneKey) -> LaneBreaker.Trouble? { lanes[key]?.gate.trouble }

    /// The trouble of a lane's targets that the provider reaches by another party's key; `nil` while there is none.
    package func thirdPartyTrouble(of key: LaneKey) -> LaneBreaker.Trouble? { lanes[key]?.gate.thirdParty.trouble }

    /// Shuts a lane whose credential turns out to be of no use before anything was sent.
    package func shut(_ key: LaneKey, misconfigured reason: String) {
        lanes[key]?.gate.report(.misconfigured(reason: reason))
    }

    /// Has a lane tried at once whose credential may have been mended.
    package func mend(_ key: LaneKey) {
        lanes[key]?.gate.recheck()
        send(.mended(key))
    }

    /// Has the quota of a lane that probes begin slowly, unless another lane of it is open here: only who consumes is counted
    /// among those that share it. Before anybody else is let through.
    func beginSlowly(_ key: LaneKey) {
        guard let quota = lanes[key]?.gateway.quota else { return }
        let hasPaused = lanes.allSatisfy { other, lane in
            other == key || lane.gateway.quota !== quota || lane.gate.trouble != nil
        }
        if hasPaused { quota.beginSlowly() }
    }

    /// Whether every environment of `app` is held up, so that consuming its queues is pointless.
    func isShut(_ app: AppID) -> Bool {
        lanes.allSatisfy { key, lane in key.app != app || lane.gate.trouble != nil }
    }
}

extension Logger {
    fileprivate func reportThirdParty(_ change: LaneBreaker.Change, of key: LaneKey) {
        let lane: Metadata = ["app": "\(key.app)", "environment": "\(key.environment.rawValue)"]
        switch change {
        case .closed:
            notice("the provider's key for Apple or browsers is taken again; their pushes are sent", metadata: lane)
        case .opened(let trouble, let pause):
            error(
                "the provider's key for Apple or browsers is refused; their pushes wait. Upload a new key in the provider's console",
                metadata: lane.merging(["reason": "\(trouble.reason)", "pause": "\(pause)"]) { $1 })
        }
    }

    fileprivate func report(_ change: LaneBreaker.Change, of key: LaneKey) {
        let lane: Metadata = ["app": "\(key.app)", "environment": "\(key.environment.rawValue)"]
        switch change {
        case .closed: notice("the provider answers again: the lane sends", metadata: lane)
        case .opened(.unavailable(let reason), let pause):
            warning(
                "the provider does not answer: the lane pauses and keeps its queue",
                metadata: lane.merging(["reason": "\(reason)", "pause": "\(pause)"]) { $1 })
        case .opened(.misconfigured(let reason), let pause):
            error(
                "our credential or configuration is refused or unusable: the lane pauses and keeps its queue until it is mended",
                metadata: lane.merging(["reason": "\(reason)", "pause": "\(pause)"]) { $1 })
        }
    }
}
