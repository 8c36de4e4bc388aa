internal import AMQP
internal import PushProtocol

/// A handler whose kind of message the runtime need not know: everything behind it is compiled once, for all stages.
struct AnyStageHandler: Sendable {
    let decode: @Sendable (consuming Inbound) throws(WireError) -> any Readable
    let handle: @Sendable ([any Readable]) async throws -> [Verdict]
    let weight: @Sendable (any Readable) -> Int

    init<Handler: StageHandler>(_ handler: Handler) {
        decode = { (inbound) throws(WireError) -> any Readable in
            guard !inbound.isSmuggled else {
                throw .misrouted("is another queue's, though the message comes from the retries of this one")
            }
            let message = try handler.decode(inbound)
            return Delivery(inbound: inbound, message: message)
        }
        handle = { deliveries in
            var batch: [Delivery<Handler.Message>] = []
            batch.reserveCapacity(deliveries.count)
            // They were made by `decode`, just above.
            for delivery in deliveries { batch.append(unsafeDowncast(delivery, to: Delivery<Handler.Message>.self)) }
            return try await handler.handle(batch)
        }
        weight = { handler.weight(of: unsafeDowncast($0, to: Delivery<Handler.Message>.self).message) }
    }
}

/// A `Delivery` of the handler's own kind of message.
protocol Readable: AnyObject, Sendable {
    var inbound: Inbound { get }
    /// What names it to the broker.
    var tag: AMQPDeliveryTag { get }
}

extension Delivery: Readable {
    var tag: AMQPDeliveryTag { inbound.delivery.tag }
}
