import Metrics
import Providers
import PushProtocol

/// Retries a push to an unregistered FID with the registration token of the same installation (decision 86).
///
/// Two bugs of Firebase's SDK for Apple platforms make FCM reject the FID of a valid device. A push that the token
/// accepts counts as accepted, and its outcome names the provider's reason against the FID.
struct FIDFallback: Sendable {
    private let revocations: Revocations?

    init(revocations: Revocations?) { self.revocations = revocations }

    /// Resends the requests of `attempt` whose FID was rejected, to their registration token.
    ///
    /// Records all rejected FIDs in ``SendAttempt/refusedFIDs``. If the token is rejected too, the rejection of the FID
    /// stands.
    ///
    /// - Parameter mayStart: called right before a request gets a stream; false withholds the request.
    func retryRejectedFIDs(
        _ attempt: inout SendAttempt, of route: ProviderRoute, over gateway: any PushGateway,
        mayStart: @escaping @Sendable (TargetRequest) -> Bool = { _ in true }, _ push: (Int) -> Push
    ) async {
        for index in attempt.results.indices where attempt.requests[index].target.address == .fid {
            if case .settled(.unregistered(_, let reason)) = attempt.results[index] {
                attempt.refusedFIDs[index] = reason
            }
        }
        guard !attempt.refusedFIDs.isEmpty, !Task.isCancelled else { return }
        var indices: [Int] = []
        var requests: [TargetRequest] = []
        for index in attempt.refusedFIDs.keys.sorted() {
            guard let request = fallback(of: attempt.requests[index], in: route.app) else {
                count(route.app, "none")
                continue
            }
            indices.append(index)
            requests.append(request)
        }
        guard !indices.isEmpty else { return }
        let granted = await grant(indices.count, push(requests[0].rendering).lane, gateway.quota)
        for index in indices[granted...] {
            count(route.app, "later")
            attempt.results[index] = .deferred(reason: "the quota is exhausted")
        }
        guard granted > 0 else { return }
        let app = route.app
        let results = await send(
            Array(requests.prefix(granted)), over: gateway,
            mayStart: { mayStart($0) && !isRevoked($0.target, of: app) }, push)
        for (index, result) in zip(indices, results) { count(route.app, apply(result, at: index, to: &attempt)) }
    }

    /// The request to the registration token; `nil` without one, and if the token may be revoked.
    private func fallback(of request: TargetRequest, in app: AppID) -> TargetRequest? {
        guard let token = request.target.fallback else { return nil }
        var request = request
        (request.target.token, request.target.address, request.target.fallback) = (token, nil, nil)
        return isRevoked(request.target, of: app) ? nil : request
    }

    /// Whether any registration of the token is revoked. The push does not carry the token's registration time.
    private func isRevoked(_ target: Push.Target, of app: AppID) -> Bool {
        guard let revocations, revocations.generation > 0 else { return false }
        var registration = target
        registration.device = DerivedID.device(app: app, provider: .fcm, environment: .production, token: target.token)
        registration.registeredAt = Timestamp(milliseconds: 0)
        return !revocations.revoked(among: [(registration, nil)], of: app).isEmpty
    }

    /// The number of requests that the quota allows within a second, at most `wanted`. The whole attempt waits for it.
    private func grant(_ wanted: Int, _ lane: Lane, _ quota: QuotaLimiter?) async -> Int {
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
        _ requests: [TargetRequest], over gateway: any PushGateway,
        mayStart: @escaping @Sendable (TargetRequest) -> Bool, _ push: (Int) -> Push
    ) async -> [SendResult] {
        let pushes = Set(requests.map(\.rendering)).sorted()
        let renumbered = Dictionary(uniqueKeysWithValues: pushes.enumerated().map { ($1, $0) })
        return await gateway.send(
            requests.map { request in
                var request = request
                request.rendering = renumbered[request.rendering] ?? 0
                return request
            },
            of: pushes.map { gateway.render(push($0)) }, in: push(pushes[0]).lane, mayStart: mayStart)
    }

    /// Replaces the result of the FID by the result of its token, unless that is a rejection, too. Returns the metric's
    /// label value.
    private func apply(_ result: SendResult, at index: Int, to attempt: inout SendAttempt) -> String {
        switch result {
        case .settled(.unregistered), .settled(.rejected), .rejectedLocally: return "refused"
        case .settled(.accepted):
            attempt.results[index] = result
            return "accepted"
        case .settled, .backOff, .throttled, .halted, .thirdPartyAuthRejected, .deferred, .unreachable, .withdrawn,
            .withheld:
            attempt.results[index] = result
            return "later"
        }
    }

    private func count(_ app: AppID, _ token: String) {
        Counter(label: "heliograph_push_fids_refused_total", dimensions: [("app", app.rawValue), ("token", token)])
            .increment()
    }
}
