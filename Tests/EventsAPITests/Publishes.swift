import AMQP
import Synchronization
import TestSupport

/// Publishes messages and returns the broker's answers (``EventPublisher/send``).
typealias Send = @Sendable ([AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation]

/// Publishes that the broker confirms after their release.
final class HeldPublishes: Sendable {
    private let gate = Gate()
    private let begun = Mutex(0)

    /// The number of publishes so far.
    var count: Int { begun.withLock(\.self) }

    var send: Send {
        { [self] messages in
            begun.withLock { $0 += 1 }
            await gate.pass()
            return messages.map { _ in .confirmed }
        }
    }

    func release() { gate.open() }
}

/// Publishes that the broker never confirms. They end with their cancellation, which calls `onCancel`.
func unconfirmed(_ onCancel: @escaping @Sendable () -> Void = {}) -> Send {
    { _ throws(AMQPError) in
        try? await Task.sleep(for: .seconds(3600))
        onCancel()
        throw AMQPError(.cancelled, operation: "publish", detail: "cancelled")
    }
}
