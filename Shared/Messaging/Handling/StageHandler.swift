package import FoundationEssentials
package import PushProtocol

/// The stage-specific part: decoding messages, and deciding about batches.
///
/// The runtime calls it from several tasks at once, each with messages of one queue. A handler returns verdicts, and
/// never acknowledges, requeues or publishes.
package protocol StageHandler: Sendable {
    associatedtype Message: Sendable

    /// Decodes one message.
    ///
    /// - Throws: For a message that can never be decoded. It is dead-lettered alone, with the error's code as its
    ///   reason.
    func decode(_ inbound: Inbound) throws(WireError) -> Message

    /// The `traceparent` in the message's body, for a message that may come without the header. Called only while
    /// tracing is on.
    func traceparent(of message: Message) -> String?

    /// Decides about a batch: one verdict per message, in the same order.
    ///
    /// Must be idempotent: an unsettled message is delivered again, alone or in another batch. After the drain deadline
    /// the task is cancelled; verdicts returned promptly are still executed.
    ///
    /// - Throws: `Outage` when a dependency is unavailable: the batch is held and retried without counting an attempt.
    ///   Any other error, a statement time-out included, and a wrong number of verdicts count as a failure of the
    ///   handler. The batch is then halved until the failing message is alone. That message goes through the retry
    ///   levels, is handled alone, and is dead-lettered as `handler-failed` after the last attempt.
    func handle(_ batch: [Delivery<Message>]) async throws -> [Verdict]

    /// The weight of a message in units of the stage, such as recipients; at least 1. Called only if the policy sets
    /// ``StagePolicy/batchWeight``.
    func weight(of message: Message) -> Int

    /// Appends the notifications that the census follows through this stage (``CensusLog``). Called when the message is
    /// settled.
    ///
    /// - Parameter isDone: Whether the message is acknowledged as done; otherwise it is retried or dead-lettered.
    func collectNotifications(of message: Message, isDone: Bool, into notifications: inout [UUID])
}

extension StageHandler {
    package func traceparent(of message: Message) -> String? { nil }
    package func weight(of message: Message) -> Int { 1 }
    package func collectNotifications(of message: Message, isDone: Bool, into notifications: inout [UUID]) {}
}

/// A dependency of the stage is unavailable. The messages are not at fault.
package struct Outage: Error {
    /// The unavailable dependency, such as `Postgres`, for logs and readiness.
    package var dependency: String
    package var underlying: any Error

    package init(_ dependency: String, underlying: any Error) {
        self.dependency = dependency
        self.underlying = underlying
    }
}
