/// How one queue's consumer comes and goes. Pure.
///
/// A process that starts takes its first messages one at a time, because it may have died of one of them: with a
/// prefetch of one, the broker counts another death against that message alone. The first message that is above
/// suspicion widens the intake to the policy's prefetch.
struct Intake: Sendable {
    enum Mode: Hashable, Sendable { case running, paused, draining }

    private enum Consumer: Hashable, Sendable {
        case none
        case narrow
        case wide
        /// Cancelled; the last deliveries may still come.
        case closing
    }

    private let prefetch: UInt16
    private(set) var mode = Mode.running
    private var consumer = Consumer.none

    init(prefetch: UInt16) { self.prefetch = prefetch }

    var isSubscribed: Bool { consumer != .none }
    var isOver: Bool { mode == .draining && consumer == .none }

    mutating func open() -> [QueueMachine.Action] {
        guard mode == .running, consumer == .none else { return [] }
        consumer = .narrow
        return [.subscribe(prefetch: 1)]
    }

    mutating func widen() -> [QueueMachine.Action] {
        guard consumer == .narrow else { return [] }
        consumer = .closing
        return [.unsubscribe]
    }

    mutating func ended() -> [QueueMachine.Action] {
        switch (consumer, mode) {
        case (.closing, .running):
            consumer = .wide
            return [.subscribe(prefetch: prefetch)]
        case (.narrow, .running), (.wide, .running):
            consumer = .none
            mode = .draining
            return [.reportLoss]
        case (_, .running), (_, .paused), (_, .draining):
            consumer = .none
            return []
        }
    }

    mutating func pause() -> [QueueMachine.Action] {
        guard mode == .running else { return [] }
        mode = .paused
        return close()
    }

    mutating func resume() -> [QueueMachine.Action] {
        guard mode == .paused else { return [] }
        mode = .running
        guard consumer == .none else { return [] }
        consumer = .wide
        return [.subscribe(prefetch: prefetch)]
    }

    mutating func drain() -> [QueueMachine.Action] {
        mode = .draining
        return close()
    }

    private mutating func close() -> [QueueMachine.Action] {
        guard consumer == .narrow || consumer == .wide else { return [] }
        consumer = .closing
        return [.unsubscribe]
    }
}
