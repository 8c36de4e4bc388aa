internal import AMQP
internal import PushProtocol

/// Makes the copy of a delivered message that goes to a retry level or to its dead-letter queue. Pure.
///
/// Body, properties and headers go along untouched, except for what would work against the copy on its way.
struct Redirection: Sendable {
    /// Who gave up, for the headers of dead letters.
    let service: String

    /// The most bytes of UTF-8 that the sentence on a dead letter may have: with the other headers, under 2 KiB.
    static let maximumDetail = 1024
    static let maximumCode = 64

    /// The copy that waits in `level` and comes back to the queue it was taken from, as its `attempt`-th attempt.
    ///
    /// Two headers carry facts that the broker does not know of the copy: the handler failed about the message alone, or
    /// the message was delivered before.
    func again(
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

    /// The same without the headers that the message came with, for one whose headers cannot be published again.
    func bareDeadLetter(
        _ delivery: AMQPDelivery, as inbound: Inbound, because reason: Reason, at now: Timestamp
    ) -> AMQPMessage {
        var message = deadLetter(delivery, as: inbound, because: reason, at: now)
        message.properties.headers = message.properties.headers.filter { HeaderName.all.contains($0.key) }
        // A publisher's own, unless it came through the exchange that only stages write to.
        if delivery.exchange != ExchangeName.return.name { message.properties.headers[HeaderName.traceparent] = nil }
        return message
    }

    /// The copy that is kept for a person, with why, where and when.
    func deadLetter(
        _ delivery: AMQPDelivery, as inbound: Inbound, because reason: Reason, at now: Timestamp, body: [UInt8]? = nil
    ) -> AMQPMessage {
        var message = copy(delivery, as: inbound, to: .dead, body: body)
        message.properties.headers.merge([
            HeaderName.attempt: .int(Int64(inbound.attempt)),
            HeaderName.reason: .text(reason.code.truncated(toUTF8: Redirection.maximumCode)),
            HeaderName.detail: .text(reason.detail.truncated(toUTF8: Redirection.maximumDetail)),
            HeaderName.queue: .text(inbound.queue.name),
            HeaderName.service: .text(service),
            HeaderName.failedAt: .int(now.milliseconds),
        ]) { $1 }
        return message
    }

    private func copy(_ delivery: AMQPDelivery, as inbound: Inbound, to exchange: ExchangeName, body: [UInt8]?)
        -> AMQPMessage
    {
        var properties = delivery.properties.ofCopy
        properties.dropWhatIsNotOurs()
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

extension String {
    /// The longest beginning of whole characters that has at most `limit` bytes of UTF-8.
    func truncated(toUTF8 limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var kept = ""
        var size = 0
        for character in self {
            size += character.utf8.count
            guard size <= limit else { break }
            kept.append(character)
        }
        return kept
    }
}
