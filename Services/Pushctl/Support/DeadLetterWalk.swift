import AMQP
import Messaging
import PushProtocol

/// Goes once through a dead-letter queue, from its oldest message on. What stays is put behind the others, so that a walk
/// through all of them leaves their order as it was.
///
/// Nothing is lost: a message leaves its place when the broker has confirmed its copy. Who is stopped in between leaves
/// one message in both places; stages recognise what they have seen.
struct DeadLetterWalk {
    enum Fate: Sendable { case keep, replay, drop }

    let administrator: AMQPAdministrator
    let transactor: AMQPTransactor
    var now: @Sendable () -> Timestamp = { .now }

    /// How many lie in a queue; `nil` when the broker has no such queue.
    func depth(of queue: WorkQueue) async throws(AMQPError) -> Int? { try await transactor.depth(of: queue.deadName) }

    /// - Parameters:
    ///   - most: The most messages that are looked at, of those that lie there now.
    ///   - decide: Returns the fate of each letter, in order. A foreign letter is kept where it says replay.
    /// - Returns: how many letters were kept although they were to be replayed: another stage wrote them.
    @discardableResult
    func walk(_ queue: WorkQueue, most: Int, _ decide: (DeadLetter) -> Fate) async throws -> Int {
        let waiting = try await depth(of: queue) ?? 0
        var foreign = 0
        for _ in 0..<min(waiting, most) {
            guard let delivery = try await transactor.take(from: queue.deadName) else { break }
            let letter = DeadLetter(delivery, of: queue)
            switch decide(letter) {
            case .keep: try await publish(letter.kept(at: now()), to: queue)
            case .replay where letter.foreignKey != nil:
                foreign += 1
                try await publish(letter.kept(at: now()), to: queue)
            case .replay: try await publish(letter.again, to: queue)
            case .drop: break
            }
            _ = try await transactor.commit([], settling: delivery)
        }
        return foreign
    }

    private func publish(_ copy: AMQPMessage, to queue: WorkQueue) async throws {
        switch try await administrator.publish(copy) {
        case .confirmed: return
        case .nacked: throw Refusal("\(queue.name) takes nothing more for now; the message stays where it was")
        case .returned(let code, let text):
            throw Refusal(
                "the broker refuses to put a message into \(queue.name) (\(code) \(text)), so it stays where it was: "
                    + "run pushctl topology apply, and use the user dead-letters")
        }
    }
}
