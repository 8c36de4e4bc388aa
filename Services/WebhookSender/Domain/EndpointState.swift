import PushProtocol

/// Whether a webhook gets requests, from the results of earlier ones. Pure; kept in memory only.
///
/// - An unavailable endpoint is paused, each time longer. Reports wait in retry levels meanwhile.
/// - An endpoint is disabled after 410, or when a report fails that is as old as the limit and no report was delivered
///   since it came. A disabled endpoint gets one report in each interval, and is enabled by a success.
struct EndpointState: Hashable, Sendable {
    enum Permission: Hashable, Sendable {
        case send
        /// Paused for this time.
        case wait(Duration)
        /// Disabled, for this reason.
        case refuse(String)
    }

    private struct Disablement: Hashable {
        let reason: String
        var nextProbe: Timestamp
    }

    /// The pauses after consecutive failures; the last one repeats.
    static let pauses: [Duration] = [.seconds(5), .seconds(30), .seconds(120), .seconds(900)]

    private let probeInterval: Duration
    private var failures = 0
    private var pausedUntil: Timestamp?
    private var lastDelivery: Timestamp?
    private var disablement: Disablement?

    init(probeInterval: Duration) { self.probeInterval = probeInterval }

    var disabledBecause: String? { disablement?.reason }

    /// Whether a report may be sent now. A permitted probe delays the next one.
    mutating func permission(at now: Timestamp) -> Permission {
        if let disablement {
            guard now >= disablement.nextProbe else { return .refuse(disablement.reason) }
            self.disablement?.nextProbe = now + probeInterval
            return .send
        }
        guard let pausedUntil, pausedUntil > now else { return .send }
        return .wait(pausedUntil - now)
    }

    /// Records a result.
    ///
    /// - Parameter isLast: whether the report is too old for a further attempt.
    mutating func record(_ result: RequestResult, firstSeen: Timestamp, isLast: Bool, at now: Timestamp) {
        switch result {
        case .delivered:
            failures = 0
            (pausedUntil, disablement) = (nil, nil)
            lastDelivery = now
        case .gone: disable("the receiver answered 410", at: now)
        case .unavailable(let reason, let retryAfter):
            pause(atLeast: retryAfter, at: now)
            if isLast { disable(ifNothingSince: firstSeen, reason, at: now) }
        case .rejected(let reason):
            if isLast { disable(ifNothingSince: firstSeen, reason, at: now) }
        case .refused: break
        }
    }

    /// Concurrent requests that fail together count once.
    private mutating func pause(atLeast retryAfter: Duration?, at now: Timestamp) {
        guard pausedUntil.map({ $0 <= now }) ?? true else { return }
        let pause = Self.pauses[min(failures, Self.pauses.count - 1)]
        failures += 1
        pausedUntil = now + max(pause, retryAfter ?? .zero)
    }

    private mutating func disable(ifNothingSince firstSeen: Timestamp, _ reason: String, at now: Timestamp) {
        if let lastDelivery, lastDelivery > firstSeen { return }
        disable("no report was delivered since \(RFC3339.string(from: firstSeen.date)); \(reason)", at: now)
    }

    /// The next report is a probe, so that one report that always fails stops no others after a restart.
    private mutating func disable(_ reason: String, at now: Timestamp) {
        guard disablement == nil else { return }
        disablement = Disablement(reason: reason, nextProbe: now)
    }
}
