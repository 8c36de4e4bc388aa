/// The state of one queue's consumer. Pure.
///
/// A new process starts with prefetch 1, because one of these messages may have crashed the previous process. Another
/// crash then increments the delivery count of that message only. The first message that needs no isolation raises the
/// prefetch to the policy's.
struct ConsumerState: Sendable {
    enum Mode: Hashable, Sendable { case running, paused, draining }

    private enum Subscription: Hashable, Sendable {
        case none
        case limited
        case full
        /// Cancelled; deliveries may still arrive.
        case cancelling
    }

    private let prefetch: UInt16
    private(set) var mode = Mode.running
    private var consumer = Subscription.none

    init(prefetch: UInt16) { self.prefetch = prefetch }

    var isSubscribed: Bool { consumer != .none }
    /// Whether deliveries may still arrive although the consumer was cancelled.
    var isCancelling: Bool { consumer == .cancelling }
    var isOver: Bool { mode == .draining && consumer == .none }

    mutating func open() -> [QueueStateMachine.Action] {
        guard mode == .running, consumer == .none else { return [] }
        consumer = .limited
        return [.subscribe(prefetch: 1)]
    }

    mutating func raisePrefetch() -> [QueueStateMachine.Action] {
        guard consumer == .limited else { return [] }
        consumer = .cancelling
        return [.unsubscribe]
    }

    mutating func ended() -> [QueueStateMachine.Action] {
        switch (consumer, mode) {
        case (.cancelling, .running):
            consumer = .full
            return [.subscribe(prefetch: prefetch)]
        case (.limited, .running), (.full, .running):
            consumer = .none
            mode = .draining
            return [.reportSubscriptionLost]
        case (_, .running), (_, .paused), (_, .draining):
            consumer = .none
            return []
        }
    }

    mutating func pause() -> [QueueStateMachine.Action] {
        guard mode == .running else { return [] }
        mode = .paused
        return close()
    }

    mutating func resume() -> [QueueStateMachine.Action] {
        guard mode == .paused else { return [] }
        mode = .running
        guard consumer == .none else { return [] }
        consumer = .full
        return [.subscribe(prefetch: prefetch)]
    }

    mutating func drain() -> [QueueStateMachine.Action] {
        mode = .draining
        return close()
    }

    private mutating func close() -> [QueueStateMachine.Action] {
        guard consumer == .limited || consumer == .full else { return [] }
        consumer = .cancelling
        return [.unsubscribe]
    }
}
