import AMQP
import Messaging
import PushProtocol
import ServiceKit

/// The readiness condition of a stage, from the state of its queues and their consumer.
enum StageCondition {
    /// Returns the state.
    ///
    /// - Parameter waiting: the queues without a consumer; one without an error is being subscribed to. Ignored without
    ///   a connection, which another condition reports.
    static func state(
        of queues: [QueueStatus], on connection: AMQPConnectionState, waiting: [String: AMQPError?]
    ) -> Readiness.State {
        for status in queues {
            switch status.state {
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
