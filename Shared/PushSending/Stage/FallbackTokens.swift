import Metrics
import PushProtocol

/// The second attempt for a FID that the provider calls unregistered: the same push to the registration token of the
/// same installation (decision 86).
///
/// Two faults of Apple's Firebase SDK make good devices look gone when they are addressed by FID. A push that the token
/// takes counts as accepted, and the outcome names the provider's reason against the FID.
///
/// | name | kind | labels | counts |
/// |---|---|---|---|
/// | `heliograph_push_fids_refused_total` | counter | app, token | FIDs that the provider does not know, by what became of the push to the token: `accepted`, `refused`, `later`, or `none` without a token |
struct FallbackTokens: Sendable {
    private let revocations: Revocations?

    init(revocations: Revocations?) { self.revocations = revocations }

    /// Sends again those copies of `round` whose FID was refused and that have a fallback, through the same lane. Notes
    /// every refused FID in ``PushRound/refusedFIDs``. Where the token is refused too, the refusal of the FID stands.
    ///
    /// - Parameter mayStart: whether the request of a copy may still be made when it gets a stream.
    func amend(
        _ round: inout PushRound, of key: LaneKey, over lane: PushLanes.Lane,
        mayStart: @escaping @Sendable (Copy) -> Bool = { _ in true }, _ push: (Int) -> Push
    ) async {
        for place in round.answers.indices where round.copies[place].target.address == .fid {
            if case .settled(.unregistered(_, let reason)) = round.answers[place] { round.refusedFIDs[place] = reason }
        }
        guard !round.refusedFIDs.isEmpty, !Task.isCancelled else { return }
        var places: [Int] = []
        var copies: [Copy] = []
        for place in round.refusedFIDs.keys.sorted() {
            guard let copy = fallback(of: round.copies[place], in: key.app) else {
                count(key.app, "none")
                continue
            }
            places.append(place)
            copies.append(copy)
        }
        guard !places.isEmpty else { return }
        let granted = await grant(places.count, push(copies[0].rendering).lane, lane.gateway.quota)
        for place in places[granted...] {
            count(key.app, "later")
            round.answers[place] = .deferred(reason: "the quota is used up")
        }
        guard granted > 0 else { return }
        let app = key.app
        let answers = await send(
            Array(copies.prefix(granted)), over: lane, mayStart: { mayStart($0) && !isRevoked($0.target, of: app) },
            push)
        for (place, answer) in zip(places, answers) { count(key.app, take(answer, at: place, into: &round)) }
    }

    /// The copy to the fallback token; `nil` without one, and where its owner may have lost it since.
    private func fallback(of copy: Copy, in app: AppID) -> Copy? {
        guard let token = copy.target.fallback else { return nil }
        var target = copy.target
        (target.token, target.address, target.fallback) = (token, nil, nil)
        guard !isRevoked(target, of: app) else { return nil }
        return Copy(of: copy.rendering, to: target, delivery: copy.delivery, expiresAt: copy.expiresAt)
    }

    /// Whether any owner of the fallback token has lost it. The push does not carry the time of the token's registration, so
    /// any known revocation counts.
    private func isRevoked(_ target: Push.Target, of app: AppID) -> Bool {
        guard let revocations, revocations.generation > 0 else { return false }
        var registration = target
        registration.device = DerivedID.device(app: app, provider: .fcm, environment: .production, token: target.token)
        registration.registeredAt = Timestamp(milliseconds: 0)
        return !revocations.revoked(among: [registration], of: app).isEmpty
    }

    /// How many of `wanted` requests the quota has room for within a second: the answers of the whole round wait for it.
    private func grant(_ wanted: Int, _ lane: Lane, _ quota: QuotaGate?) async -> Int {
        guard let quota else { return wanted }
        let deadline = quota.probeDeadline
        var granted = 0
        while granted < wanted {
            guard case .granted(let count) = await quota.admit(wanted - granted, lane, until: deadline) else { break }
            granted += count
        }
        return min(granted, wanted)
    }

    private func send(
        _ copies: [Copy], over lane: PushLanes.Lane, mayStart: @escaping @Sendable (Copy) -> Bool, _ push: (Int) -> Push
    ) async -> [GatewayAnswer] {
        let pushes = Set(copies.map(\.rendering)).sorted()
        let renumbered = Dictionary(uniqueKeysWithValues: pushes.enumerated().map { ($1, $0) })
        return await lane.gateway.send(
            copies.map {
                Copy(
                    of: renumbered[$0.rendering] ?? 0, to: $0.target, delivery: $0.delivery, expiresAt: $0.expiresAt)
            },
            of: pushes.map { lane.gateway.render(push($0)) }, in: push(pushes[0]).lane, mayStart: mayStart)
    }

    /// Takes the answer to the token in place of the answer to the FID, unless it is a refusal too. Returns its word for the
    /// metric.
    private func take(_ answer: GatewayAnswer, at place: Int, into round: inout PushRound) -> String {
        switch answer {
        case .settled(.unregistered), .settled(.rejected), .refusedHere: return "refused"
        case .settled(.accepted):
            round.answers[place] = answer
            return "accepted"
        case .settled, .backOff, .throttled, .halted, .thirdPartyHalted, .deferred, .unreachable, .withdrawn, .withheld:
            round.answers[place] = answer
            return "later"
        }
    }

    private func count(_ app: AppID, _ word: String) {
        Counter(label: "heliograph_push_fids_refused_total", dimensions: [("app", app.rawValue), ("token", word)])
            .increment()
    }
}
