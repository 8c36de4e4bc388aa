import AMQP
import Messaging
import PushProtocol

/// Whether a stage does its work, as its queues and their consumer tell it.
enum StageCondition {
    /// - Parameter waiting: the queues that cannot be consumed; one without an error is only being subscribed to. While
    ///   there is no connection they all wait, which is another condition's to say.
    static func state(
        of queues: [QueueStatus], on connection: AMQPConnectionState, waiting: [String: AMQPError?]
    ) -> Readiness.State {
        for status in queues {
            switch status.condition {
            case .holding(let what): return .waiting("holding the messages of \(status.queue.name): \(what)")
            case .starting: return .waiting("\(status.queue.name) is not consumed yet")
            case .consuming:
                guard connection == .connected, let error = waiting[status.queue.name] ?? nil else { continue }
                return .waiting("\(status.queue.name) cannot be consumed: \(error)")
            case .paused, .draining: continue
            }
        }
        return .holds
    }
}
