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
    private struct Tries {
        var minute: Timestamp
        var count = 0
        /// How many of them were taken.
        var taken = 0
    }

    private let tries = Mutex<[LaneKey: Tries]>([:])

    init(clock: SenderClock) { self.clock = clock }

    /// Sends those copies of `round` again, through the app's other environment, whose token is not known in `lane`. An
    /// acceptance takes the place of the refusal. Where the other environment said nothing about the token, or was not
    /// asked, the refusal stands and its place is in ``PushRound/unheard``.
    func amend(
        _ round: inout PushRound, of lane: LaneKey, on lanes: PushLanes,
        mayStart: @escaping @Sendable (Copy) -> Bool = { _ in true }, _ push: (Int) -> Push
    ) async {
        guard round.answers.contains(where: \.isUnknownToken), !Task.isCancelled,
            let (environment, other) = Self.other(than: lane, on: lanes)
        else { return }
        let suspects = round.answers.indices.filter { round.answers[$0].isUnknownToken }
        // Only what both environments refused is held against a token.
        round.unheard = Set(suspects)
        let otherLane = LaneKey(app: lane.app, environment: environment)
        let places = suspects.prefix(grant(suspects.count, otherLane))
        defer { round.isMisplaced = takesMost(otherLane) }
        // A lane that is in trouble, or tries its way out of it, is left alone.
        guard !places.isEmpty, other.gate.trouble == nil else { return }
        let copies = places.map { round.copies[$0] }
        let pushes = Dictionary(grouping: copies.indices) { copies[$0].rendering }.keys.sorted()
        let renumbered = Dictionary(uniqueKeysWithValues: pushes.enumerated().map { ($1, $0) })
        let again = PushRound(
            copies: copies,
            answers: await other.gateway.send(
                copies.map { copy in
                    var copy = copy
                    copy.rendering = renumbered[copy.rendering] ?? 0
                    return copy
                },
                of: pushes.map { other.gateway.render(push($0)) }, in: push(pushes[0]).lane, mayStart: mayStart))
        other.gate.report(again.report)
        for (place, answer) in zip(places, again.answers) {
            if answer.isAboutToken { round.unheard.remove(place) }
            guard case .settled(.accepted) = answer else { continue }
            noteTaken(otherLane)
            round.answers[place] = answer
            round.elsewhere[place] = environment
        }
    }

    private static func other(
        than key: LaneKey, on lanes: PushLanes
    ) -> (ProviderEnvironment, PushLanes.Lane)? {
        for environment in ProviderEnvironment.allCases where environment != key.environment {
            if let lane = lanes[LaneKey(app: key.app, environment: environment)] { return (environment, lane) }
        }
        return nil
    }

    /// How many of `wanted` tries may be made on `lane` in this minute.
    private func grant(_ wanted: Int, _ lane: LaneKey) -> Int {
        let minute = clock.now().minute
        return tries.withLock { tries in
            var used = tries[lane].flatMap { $0.minute == minute ? $0 : nil } ?? Tries(minute: minute)
            let granted = min(wanted, max(Self.triesPerMinute - used.count, 0))
            used.count += granted
            tries[lane] = used
            return granted
        }
    }

    private func noteTaken(_ lane: LaneKey) { tries.withLock { $0[lane]?.taken += 1 } }

    /// Whether `lane` took at least half of the tokens that it was asked about in the minute of its last try.
    private func takesMost(_ lane: LaneKey) -> Bool {
        tries.withLock { tries in
            guard let used = tries[lane], used.taken > 0 else { return false }
            return 2 * used.taken >= used.count
        }
    }
}

extension GatewayAnswer {
    /// Whether the provider took the token, or said what it holds against it.
    fileprivate var isAboutToken: Bool {
        switch self {
        case .settled(.accepted), .settled(.unregistered), .settled(.rejected(_, suspectToken: true)): true
        case .settled, .backOff, .throttled, .halted, .thirdPartyHalted, .refusedHere, .deferred, .unreachable,
            .withdrawn, .withheld:
            false
        }
    }

    /// Whether the provider says that this environment knows no such token. A token of another topic is none of these.
    fileprivate var isUnknownToken: Bool {
        guard case .settled(.rejected(let reason, suspectToken: true)) = self else { return false }
        return reason == APNsReason.badDeviceToken.rawValue
    }
}
