import AMQP
import Messaging
import PushProtocol

/// Passes once through a dead-letter queue, oldest first. Kept messages are republished at the tail; a full pass
/// preserves the order.
///
/// A message leaves the queue only after the broker has confirmed its copy. An interruption duplicates one message at
/// most, which the stages detect.
struct DeadLetterIterator {
    enum LetterAction: Sendable { case keep, replay, drop }

    let administrator: AMQPAdministrator
    let transactionChannel: AMQPTransactionChannel
    var now: @Sendable () -> Timestamp = { .now }

    /// The number of messages in a dead-letter queue; `nil` if it does not exist.
    func depth(of queue: WorkQueue) async throws(AMQPError) -> Int? {
        try await transactionChannel.depth(of: queue.deadName)
    }

    /// - Parameters:
    ///   - most: the maximum number of messages to read, of those in the queue now.
    ///   - action: returns the action for each letter, in order. Letters from another stage are kept instead of
    ///     replayed.
    /// - Returns: the number of letters not replayed because another stage wrote them.
    @discardableResult
    func forEachLetter(_ queue: WorkQueue, most: Int, _ action: (DeadLetter) -> LetterAction) async throws -> Int {
        let waiting = try await depth(of: queue) ?? 0
        var foreign = 0
        for _ in 0..<min(waiting, most) {
            guard let delivery = try await transactionChannel.take(from: queue.deadName) else { break }
            let letter = DeadLetter(delivery, of: queue)
            switch action(letter) {
            case .keep: try await publish(letter.keptCopy(at: now()), to: queue)
            case .replay where letter.foreignRoutingKey != nil:
                foreign += 1
                try await publish(letter.keptCopy(at: now()), to: queue)
            case .replay: try await publish(letter.replayCopy, to: queue)
            case .drop: break
            }
            _ = try await transactionChannel.commit([], settling: delivery)
        }
        return foreign
    }

    private func publish(_ copy: AMQPMessage, to queue: WorkQueue) async throws {
        switch try await administrator.publish(copy) {
        case .confirmed: return
        case .nacked: throw CommandError("\(queue.name) is full; the message stays in the dead-letter queue")
        case .returned(let code, let text):
            throw CommandError(
                "the broker refused the message for \(queue.name) (\(code) \(text)), so it stays in the dead-letter queue: "
                    + "run pushctl topology apply, and use the user dead-letters")
        }
    }
}
