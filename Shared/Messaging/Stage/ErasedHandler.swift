internal import AMQP
internal import FoundationEssentials
internal import Logging
internal import PushProtocol

/// A handler with its message type erased. The runtime is compiled once for all stages.
struct ErasedHandler: Sendable {
    let decode: @Sendable (consuming Inbound, StageTracing?) throws(WireError) -> any ErasedDelivery
    let handle: @Sendable ([any ErasedDelivery]) async throws -> [Verdict]
    let weight: @Sendable (any ErasedDelivery) -> Int
    let collectNotifications: @Sendable (any ErasedDelivery, Bool, inout [UUID]) -> Void

    init<Handler: StageHandler>(_ handler: Handler) {
        decode = { (inbound, tracing) throws(WireError) -> any ErasedDelivery in
            guard !inbound.isMisrouted else {
                throw .misrouted("belongs to another queue, but the message came through a retry exchange")
            }
            let message = try handler.decode(inbound)
            let span = tracing?.span(of: inbound, attribute: handler.traceparent(of: message))
            return Delivery(inbound: inbound, message: message, span: span)
        }
        handle = { deliveries in
            var batch: [Delivery<Handler.Message>] = []
            batch.reserveCapacity(deliveries.count)
            // All were created by `decode` above.
            for delivery in deliveries { batch.append(unsafeDowncast(delivery, to: Delivery<Handler.Message>.self)) }
            return try await handler.handle(batch)
        }
        collectNotifications = { delivery, isDone, notifications in
            let message = unsafeDowncast(delivery, to: Delivery<Handler.Message>.self).message
            handler.collectNotifications(of: message, isDone: isDone, into: &notifications)
        }
        weight = { handler.weight(of: unsafeDowncast($0, to: Delivery<Handler.Message>.self).message) }
    }
}

/// A ``Delivery`` with its message type erased.
protocol ErasedDelivery: AnyObject, Sendable {
    var inbound: Inbound { get }
    var tag: AMQPDeliveryTag { get }
    /// `nil` without tracing, and for a message without a trace.
    var span: MessageSpan? { get }
    /// The metadata of a log line about the message.
    var logMetadata: Logger.Metadata { get }
}

extension Delivery: ErasedDelivery {
    var tag: AMQPDeliveryTag { inbound.delivery.tag }
}
