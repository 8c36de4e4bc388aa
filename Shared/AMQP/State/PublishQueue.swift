internal import DequeModule
internal import Primitives

/// The messages to publish and the unconfirmed ones, and which may be sent next. Pure: time is an argument.
///
/// - Messages keep their order. On a new channel the unconfirmed ones are sent first.
/// - `basic.return` has no sequence number, so returns are matched by message id, exchange and routing key. Two
///   messages with the same three values are never unconfirmed together: the second waits.
/// - RabbitMQ refuses a publish (no such exchange, no permission, an invalid property) by closing the channel, and does
///   not name the message. The unconfirmed messages are then sent one at a time until the refused one is alone; it is
///   reported, and the others are published.
/// - A missing exchange is checked with a passive declare before the next message to it, at most once per
///   ``missingInterval``. Each failed publish would otherwise close the channel for all messages.
/// - A passive declare cannot show a missing permission. One message alone tries such an exchange, with growing
///   intervals.
struct PublishQueue {
    /// The next action of the publisher.
    enum NextAction {
        case publish(QueuedMessage)
        /// Check whether this exchange exists, and call ``verified(_:exists:now:)``.
        case verify(exchange: String)
        /// Nothing to do now.
        case wait
    }

    struct QueuedMessage {
        let job: PublishJob
        let index: Int
        /// The caller's message id, or a generated one to match returns.
        let messageID: String
        /// When it was sent on this channel.
        var sentAt: ContinuousClock.Instant?

        var message: AMQPMessage { job.messages[index] }
        var key: ReturnKey {
            ReturnKey(messageID: messageID, exchange: message.exchange, routingKey: message.routingKey)
        }
    }

    /// The fields of a return that identify its message.
    struct ReturnKey: Hashable {
        let messageID: String
        let exchange: String
        let routingKey: String
    }

    /// Why messages to an exchange are returned without sending them.
    private struct RefusedExchange {
        var code: Int
        var text: String
        /// Consecutive refusals.
        var count: Int
        var nextTry: ContinuousClock.Instant
    }

    /// How long an exchange counts as missing without a check.
    static let missingInterval: Duration = .seconds(1)
    /// The longest interval between two attempts to write to a forbidden exchange. The first is ``missingInterval``.
    static let maximumRefusalInterval: Duration = .seconds(30)

    /// The broker's `max_message_size`, read from a refusal. Expires, because an operator may raise it.
    private struct SizeLimit {
        var bytes: Int
        var text: String
        var until: ContinuousClock.Instant
    }

    /// How long messages above a refused size are returned without sending them.
    static let sizeLimitLifetime: Duration = .seconds(60)

    private var sizeLimit: SizeLimit?
    private var watch: ConfirmWatch
    private let idPrefix: String
    private var idCounter = 0
    private var pending: Deque<QueuedMessage> = []
    private var window: ConfirmWindow<QueuedMessage>
    private var sequences: [ReturnKey: UInt64] = [:]
    private var refusedExchanges: [String: RefusedExchange] = [:]
    /// How many messages from the front are sent one at a time, because one of them closed the channel.
    private var isolatedCount = 0

    init(limits: AMQPPublishWindow, watch: ConfirmWatch.Limits = .init(), idPrefix: String) {
        self.watch = ConfirmWatch(watch)
        window = ConfirmWindow(limits)
        self.idPrefix = idPrefix
        sequences.reserveCapacity(limits.messages)
    }

    var isEmpty: Bool { pending.isEmpty && window.count == 0 }

    mutating func add(_ job: PublishJob) {
        for (index, message) in job.messages.enumerated() where !job.isSettled(index) {
            let messageID = message.properties.messageID ?? makeID()
            pending.append(QueuedMessage(job: job, index: index, messageID: messageID))
        }
    }

    private mutating func makeID() -> String {
        idCounter += 1
        return "\(idPrefix)-\(idCounter)"
    }

    mutating func next(now: ContinuousClock.Instant) -> NextAction {
        while var queued = pending.first {
            let message = queued.message
            if queued.job.isSettled(queued.index) {
                pending.removeFirst()
                if isolatedCount > window.count { isolatedCount -= 1 }
                continue
            }
            if let sizeLimit, message.body.count > sizeLimit.bytes {
                if now < sizeLimit.until {
                    queued.job.settle(queued.index, .returned(code: 406, text: sizeLimit.text))
                    continue
                }
                // Alone: a refusal closes the channel for all unconfirmed messages.
                if isolatedCount == 0 { isolatedCount = window.count + 1 }
            }
            if let refusal = refusedExchanges[message.exchange] {
                if now < refusal.nextTry {
                    queued.job.settle(queued.index, .returned(code: refusal.code, text: refusal.text))
                    continue
                }
                if refusal.code == 404 { return .verify(exchange: message.exchange) }
                // Alone, so that a refusal identifies it.
                if isolatedCount == 0 { isolatedCount = window.count + 1 }
            }
            let size = message.approximateSize
            let mayGo = isolatedCount > 0 ? window.count == 0 : window.hasRoom(for: size)
            guard mayGo, sequences[queued.key] == nil else { return .wait }
            pending.removeFirst()
            queued.sentAt = now
            sequences[queued.key] = window.append(queued, bytes: size)
            return .publish(queued)
        }
        return .wait
    }

    /// The result of ``NextAction/verify(exchange:)``.
    mutating func verified(_ exchange: String, exists: Bool, now: ContinuousClock.Instant) {
        if exists {
            refusedExchanges[exchange] = nil
        } else {
            refusedExchanges[exchange]?.nextTry = now + Self.missingInterval
        }
    }

    /// Handles an ack or nack from the broker.
    mutating func settle(
        _ tag: UInt64, multiple: Bool, as confirmation: AMQPConfirmation, now: ContinuousClock.Instant
    ) throws(AMQPError) {
        var settled = 0
        try window.settle(tag, multiple: multiple) { queued in
            settled += 1
            sequences[queued.key] = nil
            if !refusedExchanges.isEmpty { refusedExchanges[queued.message.exchange] = nil }
            if confirmation == .nacked {
                watch.nacked(queued.message, now: now)
            } else {
                watch.confirmed(queued.message)
            }
            queued.job.settle(queued.index, confirmation)
        }
        isolatedCount = max(0, isolatedCount - settled)
    }

    /// Handles a return from the broker; the confirm of the same message follows. False when no message matches.
    mutating func returned(_ returned: Frame.Return, messageID: String?) -> Bool {
        let key = ReturnKey(
            messageID: messageID ?? "", exchange: returned.exchange, routingKey: returned.routingKey)
        guard let sequence = sequences[key], let queued = window[sequence] else { return false }
        queued.job.settle(queued.index, .returned(code: returned.code, text: returned.text))
        return true
    }

    /// The reason to open a new channel, because this one does not confirm; nil while it does.
    ///
    /// - Parameter unblocked: When the last broker alarm ended. During an alarm nothing is confirmed.
    mutating func reasonToReopen(
        unblocked: ContinuousClock.Instant?, now: ContinuousClock.Instant
    ) -> String? {
        var oldest = window.oldest?.sentAt
        if let sent = oldest, let unblocked { oldest = max(sent, unblocked) }
        return watch.reasonToReopen(oldest: oldest, now: now)
    }

    /// Called when the channel was closed. `close` is the broker's close method, if it sent one.
    mutating func channelLost(_ close: Frame.Close?, now: ContinuousClock.Instant) {
        var unconfirmed = window.reset()
        watch.channelClosed()
        sequences.removeAll(keepingCapacity: true)
        if let close, close.cause == Frame.Close.publish, !unconfirmed.isEmpty {
            if unconfirmed.count == 1 {
                refuse(unconfirmed.removeFirst(), close, now: now)
                isolatedCount = max(0, isolatedCount - 1)
            } else {
                isolatedCount = unconfirmed.count
            }
        }
        for queued in unconfirmed.reversed() { pending.prepend(queued) }
    }

    private mutating func refuse(_ queued: QueuedMessage, _ close: Frame.Close, now: ContinuousClock.Instant) {
        queued.job.settle(queued.index, .returned(code: close.code, text: close.text))
        // 403 and 404 are about the exchange, others (406: size or property) about the message.
        if close.code == 406, let bytes = Self.sizeLimit(in: close.text) {
            sizeLimit = SizeLimit(bytes: bytes, text: close.text, until: now + Self.sizeLimitLifetime)
        }
        guard close.code == 403 || close.code == 404 else { return }
        let count = (refusedExchanges[queued.message.exchange]?.count ?? 0) + 1
        let pause = Backoff(base: Self.missingInterval, cap: Self.maximumRefusalInterval).ceiling(afterFailures: count)
        refusedExchanges[queued.message.exchange] = RefusedExchange(
            code: close.code, text: close.text, count: count,
            nextTry: now + (close.code == 404 ? Self.missingInterval : pause))
    }

    /// The limit in RabbitMQ's refusal of a large message ("message size 3000000 is larger than configured max size
    /// 2097152", unchanged from 3.8 to 4.x); `nil` for other texts.
    static func sizeLimit(in text: String) -> Int? {
        let words = text.split(separator: " ")
        guard text.contains("message size"), let place = words.lastIndex(of: "size"), words.last != "size" else {
            return nil
        }
        return Int(words[place + 1].prefix { $0.isNumber })
    }

    /// Ends every unsettled job.
    mutating func fail(_ error: AMQPError) {
        for queued in window.reset() + pending { queued.job.fail(error) }
        pending.removeAll()
        sequences.removeAll()
    }
}
