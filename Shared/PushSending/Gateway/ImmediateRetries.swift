import Providers
import PushProtocol

/// Decides which retries of one request to make at once. Retries with a delay are a ``SendResult``. Pure.
struct ImmediateRetries {
    /// The result of one request on the connection.
    enum ExchangeResult: Hashable, Sendable {
        case answered(Consequence)
        case lost(TransportError)
    }

    enum RetryDecision: Hashable, Sendable {
        case finish(SendResult)
        case finishAndReconnect(SendResult)
        case resend
        case resendOnNewConnection
        case resendWithNewCredential
    }

    /// The retry delay after a lost response or an unsent request.
    static let retryDelayAfterLoss = Duration.seconds(10)

    /// How often a request may wait again because the connections were replaced meanwhile.
    static let maxConnectionWaits = 3

    private let delivery: DeliveryPolicy
    private var outdated = 0
    private var resentAfterAmbiguity = false
    private var reauthenticated = false
    private var reconnected = false

    init(delivery: DeliveryPolicy = .atLeastOnce) { self.delivery = delivery }

    mutating func nextStep(after exchange: ExchangeResult) -> RetryDecision {
        switch exchange {
        case .answered(let consequence): nextStep(after: consequence)
        case .lost(let error): nextStep(after: error)
        }
    }

    private mutating func nextStep(after consequence: Consequence) -> RetryDecision {
        switch consequence {
        case .settle(let answer): return .finish(.settled(answer))
        case .backOff(let floor, let reason): return .finish(.backOff(floor: floor, reason: reason))
        case .throttle(let floor, let reason): return .finish(.throttled(floor: floor, reason: reason))
        // A connection stays bound to its credential, so a repaired one needs a new connection.
        case .halt(let reason): return .finishAndReconnect(.halted(reason: reason))
        case .reconnectAndBackOff(let floor, let reason):
            return .finishAndReconnect(.backOff(floor: floor, reason: reason))
        case .waitForThirdParty(let reason): return .finish(.thirdPartyAuthRejected(reason: reason))
        case .reauthenticate(let reason):
            guard !reauthenticated else { return .finishAndReconnect(.halted(reason: reason)) }
            reauthenticated = true
            return .resendWithNewCredential
        case .reconnect(let reason, let otherwise):
            guard !reconnected else {
                return switch otherwise {
                case .halts: .finishAndReconnect(.halted(reason: reason))
                case .backsOff(let floor): .finish(.backOff(floor: floor, reason: reason))
                }
            }
            reconnected = true
            return .resendOnNewConnection
        }
    }

    /// With at-least-once delivery, resends a request that may have been processed, with the same ids: first at once,
    /// then with a delay. With at-most-once delivery, its outcome is unknown.
    private mutating func nextStep(after error: TransportError) -> RetryDecision {
        switch error {
        case .unreachable(let reason): return .finish(.unreachable(reason: reason))
        case .deferred(let reason): return .finish(.deferred(reason: reason))
        case .timedOut where delivery == .atMostOnce: return .finish(.settled(.unknown(reason: "timed-out")))
        case .withdrawn: return .finish(.withdrawn)
        case .withheld: return .finish(.withheld)
        case .outdated:
            guard outdated < Self.maxConnectionWaits else { return .finish(.deferred(reason: "connections-retired")) }
            outdated += 1
            return .resend
        case .timedOut: return .finish(.backOff(floor: Self.retryDelayAfterLoss, reason: "timed-out"))
        // The transport has retried already.
        case .notProcessed(let reason): return .finish(.backOff(floor: Self.retryDelayAfterLoss, reason: reason))
        case .ambiguous(let reason):
            if delivery == .atMostOnce { return .finish(.settled(.unknown(reason: reason))) }
            guard !resentAfterAmbiguity else {
                return .finish(.backOff(floor: Self.retryDelayAfterLoss, reason: reason))
            }
            resentAfterAmbiguity = true
            return .resend
        }
    }
}
