package import PushProtocol

/// All of a stage that is the stage's own: what its messages are, and what becomes of a batch of them.
///
/// The runtime calls it from several tasks at once, with batches of one queue each. It never acknowledges, requeues or
/// publishes: it returns verdicts.
package protocol StageHandler: Sendable {
    associatedtype Message: Sendable

    /// Reads one message. Throwing means that these bytes can never be read: the message is dead-lettered at once,
    /// alone, with the error's code as its reason.
    func decode(_ inbound: Inbound) throws(WireError) -> Message

    /// Decides about a batch: one verdict for each message, in the same order.
    ///
    /// A message may come again, alone or in another batch, after anything that kept it from being settled; handling
    /// it again must do no harm.
    ///
    /// Cancelled, because the drain deadline passed, it may still return verdicts, and promptly: they are carried out.
    ///
    /// - Throws: `Outage` when something this stage depends on is away: the batch is held and tried again, and no
    ///   attempt is counted. Anything else, a statement that ran out of time included, and a wrong number of verdicts, is
    ///   this handler's failure: the batch is halved until the failing message is alone. That one is retried through the
    ///   delay levels, alone from then on, and dead-lettered as `handler-failed` after the last attempt.
    func handle(_ batch: [Delivery<Message>]) async throws -> [Verdict]

    /// How much work a message is, in units of the stage's own, such as recipients; at least 1. Asked only where the
    /// policy has a ``StagePolicy/batchWeight``.
    func weight(of message: Message) -> Int
}

extension StageHandler {
    package func weight(of message: Message) -> Int { 1 }
}

/// Nothing is wrong with these messages: something the stage depends on is away.
package struct Outage: Error {
    /// What is away, as a phrase for people, such as `Postgres`.
    package var what: String
    package var underlying: any Error

    package init(_ what: String, underlying: any Error) {
        self.what = what
        self.underlying = underlying
    }
}
