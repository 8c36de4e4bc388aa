internal import AMQP
internal import Primitives
internal import PushProtocol

/// Makes the copies for retry queues and dead-letter queues. Pure.
///
/// Keeps body, properties and headers, except those that the broker would act upon.
struct RepublishRouting: Sendable {
    /// The service name in the headers of dead letters.
    let service: String

    /// The most UTF-8 bytes of the detail sentence. All headers together stay below 2 KiB.
    static let maximumDetail = 1024
    static let maximumCode = 64

    /// The copy for the retry queue of `level`. It returns to its queue as attempt `attempt`.
    ///
    /// Two headers keep facts that the broker does not know of the copy: the handler failed on the message alone, and
    /// the message was redelivered.
    func retryCopy(
        _ delivery: AMQPDelivery, as inbound: Inbound, at level: RetryLevel, attempt: Int,
        because reason: Reason? = nil, body: [UInt8]? = nil
    ) -> AMQPMessage {
        var message = copy(delivery, as: inbound, to: .retry(level), body: body)
        message.properties.headers[HeaderName.attempt] = .int(Int64(attempt))
        switch reason?.code {
        case ReasonCode.handlerFailed: message.properties.headers[HeaderName.failedAlone] = .bool(true)
        case ReasonCode.setAside:
            message.properties.headers[HeaderName.redelivered] = inbound.redelivered ? .bool(true) : nil
            message.properties.headers[HeaderName.failedAlone] = delivery.failedAlone ? .bool(true) : nil
        default: break
        }
        return message
    }

    /// ``deadLetterCopy(_:as:because:at:body:)`` without the original headers, for a message whose headers cannot be
    /// published.
    func deadLetterCopyWithoutHeaders(
        _ delivery: AMQPDelivery, as inbound: Inbound, because reason: Reason, at now: Timestamp
    ) -> AMQPMessage {
        var message = deadLetterCopy(delivery, as: inbound, because: reason, at: now)
        message.properties.headers = message.properties.headers.filter { HeaderName.all.contains($0.key) }
        // From the original publisher, unless it came through `return`, to which only stages write.
        if delivery.exchange != ExchangeName.return.name {
            for name in [HeaderName.traceparent, HeaderName.tracestate, HeaderName.traceLinks] {
                message.properties.headers[name] = nil
            }
        }
        return message
    }

    /// The copy for the dead-letter queue, with reason, queue, service and time in its headers.
    func deadLetterCopy(
        _ delivery: AMQPDelivery, as inbound: Inbound, because reason: Reason, at now: Timestamp, body: [UInt8]? = nil
    ) -> AMQPMessage {
        var message = copy(delivery, as: inbound, to: .dead, body: body)
        message.properties.headers.merge([
            HeaderName.attempt: .int(Int64(inbound.attempt)),
            HeaderName.reason: .text(reason.code.truncated(toUTF8: RepublishRouting.maximumCode)),
            HeaderName.detail: .text(reason.detail.truncated(toUTF8: RepublishRouting.maximumDetail)),
            HeaderName.queue: .text(inbound.queue.name),
            HeaderName.service: .text(service),
            HeaderName.failedAt: .int(now.milliseconds),
        ]) { $1 }
        return message
    }

    private func copy(_ delivery: AMQPDelivery, as inbound: Inbound, to exchange: ExchangeName, body: [UInt8]?)
        -> AMQPMessage
    {
        var properties = delivery.properties.forRepublishing
        properties.removeBrokerHeaders()
        properties.headers[HeaderName.failedAlone] = nil
        properties.headers[HeaderName.redelivered] = nil
        properties.headers.merge([
            HeaderName.exchange: .text(inbound.exchange),
            HeaderName.routingKey: .text(inbound.routingKey),
            HeaderName.firstSeen: .int(inbound.firstSeen.milliseconds),
        ]) { $1 }
        return AMQPMessage(
            exchange: exchange.name, routingKey: inbound.queue.name, properties: properties,
            body: body ?? delivery.body)
    }
}
