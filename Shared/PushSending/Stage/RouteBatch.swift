import Messaging
import Providers
import PushProtocol

/// The pushes of a delivered batch that use the same route.
struct RouteBatch: Sendable {
    let route: ProviderRoute
    private(set) var pushes: [Delivery<Push>]
    /// The index of each push in the delivered batch.
    private(set) var indices: [Int]

    /// Splits `batch` by route, in the order of first pushes.
    ///
    /// A push that was delivered twice is in two batches of its route: the second waits for the outcomes of the first
    /// (``RecentOutcomeCache``).
    static func byRoute(_ batch: [Delivery<Push>]) -> [RouteBatch] {
        guard let first = batch.first.map({ ProviderRoute(of: $0.message) }) else { return [] }
        // A queue has one app's pushes, and most apps have one environment.
        if batch.count == 1 || batch.allSatisfy({ first.isRoute(of: $0) }) && !hasRepeats(batch) {
            return [RouteBatch(route: first, pushes: batch, indices: Array(batch.indices))]
        }
        var batches: [RouteBatch] = []
        for (index, push) in batch.enumerated() {
            let match = batches.firstIndex { $0.route.isRoute(of: push) && !$0.contains(push) } ?? batches.count
            if match == batches.count {
                batches.append(RouteBatch(route: ProviderRoute(of: push.message), pushes: [], indices: []))
            }
            batches[match].pushes.append(push)
            batches[match].indices.append(index)
        }
        return batches
    }

    private static func hasRepeats(_ batch: [Delivery<Push>]) -> Bool {
        Set(batch.lazy.map(\.message.trace.id)).count < batch.count
    }

    private func contains(_ push: Delivery<Push>) -> Bool {
        pushes.contains { $0.message.trace.id == push.message.trace.id }
    }
}

extension ProviderRoute {
    /// Whether this is the route of a push. Takes the delivery, since a push is expensive to copy.
    fileprivate func isRoute(of push: Delivery<Push>) -> Bool {
        environment == push.message.environment && app == push.message.app
    }
}
