internal import AMQP

extension AMQPProperties {
    /// The properties for a republished copy.
    ///
    /// Without `expiration`, which would expire the copy early in a retry queue and delete it from a dead-letter queue.
    /// Without `user-id`, because RabbitMQ closes the channel when it differs from the connection's user.
    var forRepublishing: AMQPProperties {
        var copy = self
        copy.persistent = true
        copy.expiration = nil
        copy.userID = nil
        return copy
    }

    /// Removes the headers that the broker wrote or would act upon.
    mutating func removeBrokerHeaders() { headers = headers.filter { !Self.brokerHeaders.contains($0.key) } }

    /// A republished `x-death` makes RabbitMQ detect a cycle without a rejection and drop the message (RabbitMQ: Dead
    /// Letter Exchanges, §cycles). `CC` and `BCC` route the copy to queues of the original sender's choice (RabbitMQ:
    /// Sender-selected Distribution).
    private static let brokerHeaders: Set<String> = [
        "x-death", "x-first-death-exchange", "x-first-death-queue", "x-first-death-reason", "x-last-death-exchange",
        "x-last-death-queue", "x-last-death-reason", "x-delivery-count", "x-acquired-count", "CC", "BCC",
    ]
}
