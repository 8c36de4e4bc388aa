internal import AMQP

extension AMQPProperties {
    /// Those of a copy that goes back to the broker: without what would work against it on its way.
    ///
    /// A time to live of its own would let the copy expire early in a retry level, and vanish from a dead-letter queue. A
    /// user id that is not this connection's has the broker refuse the copy and close the channel.
    var ofCopy: AMQPProperties {
        var copy = self
        copy.persistent = true
        copy.expiration = nil
        copy.userID = nil
        return copy
    }

    /// Takes out the headers that the broker wrote, or would act upon.
    mutating func dropWhatIsNotOurs() { headers = headers.filter { !Self.notOurs.contains($0.key) } }

    /// Sent back, `x-death` would have the broker find a cycle without a rejection and drop the message without a
    /// word; `CC` and `BCC` would carry the copy into queues of its sender's choosing.
    private static let notOurs: Set<String> = [
        "x-death", "x-first-death-exchange", "x-first-death-queue", "x-first-death-reason", "x-last-death-exchange",
        "x-last-death-queue", "x-last-death-reason", "x-delivery-count", "x-acquired-count", "CC", "BCC",
    ]
}
