import PushProtocol
import Synchronization

/// A token that one of a provider's environments does not know may belong to the other (`push-protocols` C.4, C.6): it
/// is tried there once, where the app has one, and an acceptance there tells where the registration belongs.
///
/// At most so many a minute, since APNs holds unknown tokens against a connection (A.9): more of them than that are not
/// misplaced tokens but a fault, which feedback's guard is there for.
final class OtherEnvironment: Sendable {
    static let triesPerMinute = 20

    private let clock: SenderClock
    private let tries = Mutex<[LaneKey: (minute: Timestamp, count: Int)]>([:])

    init(clock: SenderClock) { self.clock = clock }

    /// Sends to those targets of `round` again, through the app's other environment, whose token is not known in the
    /// push's own. An acceptance takes the place of the refusal; any other answer there leaves it as it is.
    func amend<Gateway: PushGateway>(
        _ round: inout PushRound, of push: Push, on lanes: PushLanes<Gateway>, concurrency: Int
    ) async {
        let suspects = round.answers.filter { $0.value.isUnknownToken }.keys.sorted()
        guard !suspects.isEmpty, !Task.isCancelled, let (environment, lane) = Self.other(of: push, on: lanes) else {
            return
        }
        let places = suspects.prefix(grant(suspects.count, LaneKey(app: push.app, environment: environment)))
        // A lane that is in trouble, or tries its way out of it, is left alone.
        guard !places.isEmpty, lane.gate.trouble == nil else { return }
        let second = await PushRound.run(
            places, of: push, from: lane.gateway.render(push), through: lane.gateway, concurrency: concurrency)
        lane.gate.report(second.report)
        for (place, answer) in second.answers {
            guard case .settled(.accepted) = answer else { continue }
            round.answers[place] = answer
            round.elsewhere[place] = environment
        }
    }

    private static func other<Gateway: PushGateway>(
        of push: Push, on lanes: PushLanes<Gateway>
    ) -> (ProviderEnvironment, PushLanes<Gateway>.Lane)? {
        for environment in ProviderEnvironment.allCases where environment != push.environment {
            if let lane = lanes[LaneKey(app: push.app, environment: environment)] { return (environment, lane) }
        }
        return nil
    }

    /// How many of `wanted` tries may be made on `lane` in this minute.
    private func grant(_ wanted: Int, _ lane: LaneKey) -> Int {
        let minute = clock.now().minute
        return tries.withLock { tries in
            let used = tries[lane].map { $0.minute == minute ? $0.count : 0 } ?? 0
            let granted = min(wanted, max(Self.triesPerMinute - used, 0))
            tries[lane] = (minute, used + granted)
            return granted
        }
    }
}

extension GatewayAnswer {
    /// Whether the provider says that this environment knows no such token. A token of another topic is none of these.
    fileprivate var isUnknownToken: Bool {
        guard case .settled(.rejected(let reason, suspectToken: true)) = self else { return false }
        return reason == APNsReason.badDeviceToken.rawValue
    }
}
