import Providers
import PushProtocol
import Synchronization

/// Retries tokens that are unknown in one environment of APNs in the app's other environment, once each.
///
/// An acceptance there shows the registration's real environment. Limited to ``triesPerMinute``, because APNs closes
/// connections with many bad tokens. More unknown tokens than that are a fault, which feedback's guard detects.
final class EnvironmentFallback: Sendable {
    static let triesPerMinute = 20

    private let clock: SenderClock
    private struct Tries {
        var minute: Timestamp
        var count = 0
        var accepted = 0
    }

    private let tries = Mutex<[ProviderRoute: Tries]>([:])

    init(clock: SenderClock) { self.clock = clock }

    /// Resends the requests of `attempt` whose token is unknown in `route` through the app's other environment.
    ///
    /// An acceptance replaces the rejection. A rejection that the other environment does not confirm stands; its index
    /// is in ``SendAttempt/unconfirmed``.
    func retryUnknownTokens(
        _ attempt: inout SendAttempt, of route: ProviderRoute, on routes: ProviderRoutes,
        mayStart: @escaping @Sendable (TargetRequest) -> Bool = { _ in true }, _ push: (Int) -> Push
    ) async {
        guard attempt.results.contains(where: \.isUnknownToken), !Task.isCancelled,
            let (environment, other) = Self.other(than: route, on: routes)
        else { return }
        let suspects = attempt.results.indices.filter { attempt.results[$0].isUnknownToken }
        // Only a rejection by both environments is evidence against a token.
        attempt.unconfirmed = Set(suspects)
        let otherRoute = ProviderRoute(app: route.app, environment: environment)
        let indices = suspects.prefix(grant(suspects.count, otherRoute))
        defer { attempt.isLikelyWrongEnvironment = acceptsMost(otherRoute) }
        guard !indices.isEmpty, other.breaker.openCause == nil else { return }
        let requests = indices.map { attempt.requests[$0] }
        let pushes = Dictionary(grouping: requests.indices) { requests[$0].rendering }.keys.sorted()
        let renumbered = Dictionary(uniqueKeysWithValues: pushes.enumerated().map { ($1, $0) })
        let again = SendAttempt(
            requests: requests,
            results: await other.gateway.send(
                requests.map { request in
                    var request = request
                    request.rendering = renumbered[request.rendering] ?? 0
                    return request
                },
                of: pushes.map { other.gateway.render(push($0)) }, in: push(pushes[0]).lane, mayStart: mayStart))
        other.breaker.record(again.observation)
        for (index, result) in zip(indices, again.results) {
            if result.isAboutToken { attempt.unconfirmed.remove(index) }
            guard case .settled(.accepted) = result else { continue }
            recordAcceptance(otherRoute)
            attempt.results[index] = result
            attempt.acceptedIn[index] = environment
        }
    }

    private static func other(
        than route: ProviderRoute, on routes: ProviderRoutes
    ) -> (ProviderEnvironment, ProviderRoutes.GuardedGateway)? {
        for environment in ProviderEnvironment.allCases where environment != route.environment {
            if let other = routes[ProviderRoute(app: route.app, environment: environment)] {
                return (environment, other)
            }
        }
        return nil
    }

    /// The number of tries allowed on `route` in this minute, at most `wanted`.
    private func grant(_ wanted: Int, _ route: ProviderRoute) -> Int {
        let minute = clock.now().minute
        return tries.withLock { tries in
            var used = tries[route].flatMap { $0.minute == minute ? $0 : nil } ?? Tries(minute: minute)
            let granted = min(wanted, max(Self.triesPerMinute - used.count, 0))
            used.count += granted
            tries[route] = used
            return granted
        }
    }

    private func recordAcceptance(_ route: ProviderRoute) { tries.withLock { $0[route]?.accepted += 1 } }

    /// Whether `route` accepted at least half of the tokens tried in the minute of its last try.
    private func acceptsMost(_ route: ProviderRoute) -> Bool {
        tries.withLock { tries in
            guard let used = tries[route], used.accepted > 0 else { return false }
            return 2 * used.accepted >= used.count
        }
    }
}

extension SendResult {
    /// Whether the provider accepted the token, or rejected it.
    fileprivate var isAboutToken: Bool {
        switch self {
        case .settled(.accepted), .settled(.unregistered), .settled(.rejected(_, suspectToken: true)): true
        case .settled, .backOff, .throttled, .halted, .thirdPartyAuthRejected, .rejectedLocally, .deferred,
            .unreachable, .withdrawn, .withheld:
            false
        }
    }

    /// Whether the token is unknown in this environment. Not true of a token of another topic.
    fileprivate var isUnknownToken: Bool {
        guard case .settled(.rejected(let reason, suspectToken: true)) = self else { return false }
        return reason == APNsReason.badDeviceToken.rawValue
    }
}
