import PushProtocol
import Synchronization

/// The subscriptions at the simulated push service. Safe from any thread.
final class BrowserSubscriptions: Sendable {
    /// The maximum number of subscriptions. Beyond it, the oldest ones are unknown.
    static let maximumSubscriptions = 100_000

    private struct State {
        var subscriptions: [String: BrowserSubscription] = [:]
        var endings: [String: BrowserSubscription.Ending] = [:]
        /// The ids, oldest first.
        var order: [String] = []
    }

    private let state = Mutex(State())

    func insert(_ subscription: BrowserSubscription) {
        state.withLock { state in
            if state.order.count >= Self.maximumSubscriptions {
                // In batches, since each removal moves the rest.
                for id in state.order.prefix(Self.maximumSubscriptions / 10) {
                    state.subscriptions[id] = nil
                    state.endings[id] = nil
                }
                state.order.removeFirst(Self.maximumSubscriptions / 10)
            }
            state.subscriptions[subscription.id] = subscription
            state.order.append(subscription.id)
        }
    }

    /// Ends a subscription. Returns whether it is known.
    func end(_ id: String, as ending: BrowserSubscription.Ending) -> Bool {
        state.withLock { state in
            guard state.subscriptions[id] != nil else { return false }
            state.endings[id] = ending
            return true
        }
    }

    /// The subscription that a request addresses.
    func find(_ id: String, at now: Timestamp) throws(WebPushRejection) -> BrowserSubscription {
        let (subscription, ending) = state.withLock { ($0.subscriptions[id], $0.endings[id]) }
        guard let subscription, ending != .unknown else {
            throw WebPushRejection(.unknownSubscription, "there is no such subscription")
        }
        guard ending == nil else { throw WebPushRejection(.unsubscribed, "the browser unsubscribed") }
        if let expiresAt = subscription.expiresAt, expiresAt <= now {
            throw WebPushRejection(.unsubscribed, "the subscription expired")
        }
        return subscription
    }

    func removeAll() { state.withLock { $0 = State() } }
}
