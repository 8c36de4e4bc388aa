internal import DequeModule

/// What is to be published, what is under way, and what may go next. Pure: time comes in as an argument.
///
/// - Order is kept, and everything unconfirmed goes first again on a new channel.
/// - Returns carry no sequence number, so they are matched by message id, exchange and routing key. Two messages that a
///   return could not tell apart are never under way together: the second waits.
/// - The broker answers a publish it will not have (no such exchange, no permission, a property it rejects) by closing
///   the channel, without saying which message it was. From then on the messages that were under way go one at a time,
///   until the culprit stands alone and is reported; the others get through.
/// - An exchange found missing is asked for before the next message to it, at most once in ``missingInterval``, so that
///   messages to it do not cost everyone else the channel. One that may not be written to cannot be asked for: a single
///   message tries it, alone, ever less often.
struct Outbox {
    /// What to do next.
    enum Step {
        case publish(Entry)
        /// Ask whether this exchange exists now, and tell ``verified(_:exists:now:)``.
        case verify(exchange: String)
        /// Nothing, until something happens.
        case wait
    }

    /// One message under way.
    struct Entry {
        let job: PublishJob
        let index: Int
        /// The caller's message id, or one made up so that a return can be matched.
        let messageID: String

        var message: AMQPMessage { job.messages[index] }
        var key: ReturnKey {
            ReturnKey(messageID: messageID, exchange: message.exchange, routingKey: message.routingKey)
        }
    }

    /// All that a return says about which message it was.
    struct ReturnKey: Hashable {
        let messageID: String
        let exchange: String
        let routingKey: String
    }

    /// Why messages to an exchange are answered without a try.
    private struct Refusal {
        var code: Int
        var text: String
        /// In a row.
        var count: Int
        var nextTry: ContinuousClock.Instant
    }

    /// How long an exchange counts as missing without asking.
    static let missingInterval: Duration = .seconds(1)
    /// The longest that an exchange counts as closed to us without a try; the first time it is ``missingInterval``.
    static let longestRefusal: Duration = .seconds(30)

    /// The broker's `max_message_size`, as a refusal named it. Believed for a while, since it may be raised.
    private struct SizeLimit {
        var bytes: Int
        var text: String
        var until: ContinuousClock.Instant
    }

    /// How long a message size that the broker refused is refused without a try.
    static let sizeLimitMemory: Duration = .seconds(60)

    private var sizeLimit: SizeLimit?
    private let idPrefix: String
    private var idCounter = 0
    private var pending: Deque<Entry> = []
    private var window: ConfirmWindow<Entry>
    private var sequences: [ReturnKey: UInt64] = [:]
    private var refused: [String: Refusal] = [:]
    /// How many messages from the front must go alone, because one of them closed the channel.
    private var suspects = 0

    init(limits: AMQPPublishWindow, idPrefix: String) {
        window = ConfirmWindow(limits)
        self.idPrefix = idPrefix
        sequences.reserveCapacity(limits.messages)
    }

    var isEmpty: Bool { pending.isEmpty && window.count == 0 }

    mutating func add(_ job: PublishJob) {
        for (index, message) in job.messages.enumerated() where !job.isSettled(index) {
            let messageID = message.properties.messageID ?? makeID()
            pending.append(Entry(job: job, index: index, messageID: messageID))
        }
    }

    private mutating func makeID() -> String {
        idCounter += 1
        return "\(idPrefix)-\(idCounter)"
    }

    mutating func next(now: ContinuousClock.Instant) -> Step {
        while let entry = pending.first {
            let message = entry.message
            if entry.job.isSettled(entry.index) {
                pending.removeFirst()
                if suspects > window.count { suspects -= 1 }
                continue
            }
            if let sizeLimit, message.body.count > sizeLimit.bytes {
                if now < sizeLimit.until {
                    entry.job.settle(entry.index, .returned(code: 406, text: sizeLimit.text))
                    continue
                }
                // Alone: the broker closes the channel of everything under way with it.
                if suspects == 0 { suspects = window.count + 1 }
            }
            if let refusal = refused[message.exchange] {
                if now < refusal.nextTry {
                    entry.job.settle(entry.index, .returned(code: refusal.code, text: refusal.text))
                    continue
                }
                if refusal.code == 404 { return .verify(exchange: message.exchange) }
                // Alone, so that it costs no one else the channel without being found out.
                if suspects == 0 { suspects = window.count + 1 }
            }
            let size = message.approximateSize
            let mayGo = suspects > 0 ? window.count == 0 : window.hasRoom(for: size)
            guard mayGo, sequences[entry.key] == nil else { return .wait }
            pending.removeFirst()
            sequences[entry.key] = window.append(entry, bytes: size)
            return .publish(entry)
        }
        return .wait
    }

    /// The answer to ``Step/verify(exchange:)``.
    mutating func verified(_ exchange: String, exists: Bool, now: ContinuousClock.Instant) {
        if exists {
            refused[exchange] = nil
        } else {
            refused[exchange]?.nextTry = now + Self.missingInterval
        }
    }

    /// A confirm or rejection from the broker.
    mutating func settle(_ tag: UInt64, multiple: Bool, as confirmation: AMQPConfirmation) throws(AMQPError) {
        var settled = 0
        try window.settle(tag, multiple: multiple) { entry in
            settled += 1
            sequences[entry.key] = nil
            if !refused.isEmpty { refused[entry.message.exchange] = nil }
            entry.job.settle(entry.index, confirmation)
        }
        suspects = max(0, suspects - settled)
    }

    /// A return from the broker; the confirm for the same message follows. False when it matches nothing.
    mutating func returned(_ returned: Frame.Return, messageID: String?) -> Bool {
        let key = ReturnKey(
            messageID: messageID ?? "", exchange: returned.exchange, routingKey: returned.routingKey)
        guard let sequence = sequences[key], let entry = window[sequence] else { return false }
        entry.job.settle(entry.index, .returned(code: returned.code, text: returned.text))
        return true
    }

    /// The channel is gone; `close` says why, when the broker said so.
    mutating func channelLost(_ close: Frame.Close?, now: ContinuousClock.Instant) {
        var unconfirmed = window.reset()
        sequences.removeAll(keepingCapacity: true)
        if let close, close.cause == Frame.Close.publish, !unconfirmed.isEmpty {
            if unconfirmed.count == 1 {
                refuse(unconfirmed.removeFirst(), close, now: now)
                suspects = max(0, suspects - 1)
            } else {
                suspects = unconfirmed.count
            }
        }
        for entry in unconfirmed.reversed() { pending.prepend(entry) }
    }

    private mutating func refuse(_ entry: Entry, _ close: Frame.Close, now: ContinuousClock.Instant) {
        entry.job.settle(entry.index, .returned(code: close.code, text: close.text))
        // 403 no permission, 404 not found: about the exchange. Others (406 a size or property) are about the message.
        if close.code == 406, let bytes = Self.sizeLimit(in: close.text) {
            sizeLimit = SizeLimit(bytes: bytes, text: close.text, until: now + Self.sizeLimitMemory)
        }
        guard close.code == 403 || close.code == 404 else { return }
        let count = (refused[entry.message.exchange]?.count ?? 0) + 1
        let pause = min(Self.longestRefusal, Self.missingInterval * (1 << min(count - 1, 10)))
        refused[entry.message.exchange] = Refusal(
            code: close.code, text: close.text, count: count,
            nextTry: now + (close.code == 404 ? Self.missingInterval : pause))
    }

    /// The limit that RabbitMQ names when it refuses a message for its size ("message size 3000000 is larger than configured
    /// max size 2097152", the same words from 3.8 to 4.x); `nil` for any other text.
    static func sizeLimit(in text: String) -> Int? {
        let words = text.split(separator: " ")
        guard text.contains("message size"), let place = words.lastIndex(of: "size"), words.last != "size" else {
            return nil
        }
        return Int(words[place + 1].prefix { $0.isNumber })
    }

    /// Ends every job that is not settled.
    mutating func fail(_ error: AMQPError) {
        for entry in window.reset() + pending { entry.job.fail(error) }
        pending.removeAll()
        sequences.removeAll()
    }
}
