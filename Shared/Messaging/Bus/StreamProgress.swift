internal import AMQP

/// How far a stream has been read, by the numbers of its messages and by the marks that were published to it. Pure, and
/// without a wall clock: a process whose clock is hours ahead resumes where it stopped, as any other.
struct StreamProgress {
    /// One message of a stream. The id shows whether a message of the same number belongs to another stream.
    struct Message: Hashable {
        let offset: Int64
        let id: String?
    }

    private enum Position {
        /// Nothing was read yet, or it is all to be read again.
        case beginning
        case after(Message)
        /// Attached at this message once more; nothing came since.
        case resuming(Message)
    }

    private var position = Position.beginning
    /// The first message of the stream when it was last read from its beginning.
    private var first: Message?
    /// Whether messages before the last delivered one may be missing, since the last ``takeGap()``.
    private var hasGap = false
    /// When those of our marks were published that were not read yet.
    private var marks: [String: ContinuousClock.Instant] = [:]
    /// Everything that the broker confirmed until then has been read; `nil` before the first mark.
    private(set) var readUntil: ContinuousClock.Instant?

    /// Whether nothing was delivered since the last ``start()`` after an interruption.
    var isResuming: Bool {
        if case .resuming = position { true } else { false }
    }

    /// Where to attach: at first at the oldest message that the broker keeps. After an interruption reading resumes with the
    /// last message, whose id shows whether the stream is still the same one.
    ///
    /// After an attachment without any delivery the next one is at the beginning.
    mutating func start() -> AMQPStreamStart {
        switch position {
        case .beginning: return .first
        case .after(let last):
            position = .resuming(last)
            return .offset(last.offset)
        case .resuming:
            position = .beginning
            return .first
        }
    }

    /// Notes a message that was delivered. A whole stream begins with the number 0. The broker drops the oldest messages,
    /// by age and by length: the first one then has another number, and the last message that was read may be among them.
    ///
    /// - Returns: whether it is of the stream that was read so far. After a `false` the next ``start()`` is the beginning.
    mutating func reads(_ message: Message) -> Bool {
        switch position {
        case .after: break
        case .beginning:
            let isAnother = first.map { $0 != message || message.id == nil } ?? false
            if message.offset > 0 || isAnother { hasGap = true }
            first = message
        case .resuming(let last):
            let isAnother = message.offset < last.offset || message.offset == last.offset && message.id != last.id
            guard !isAnother else {
                position = .beginning
                return false
            }
            if message.offset > last.offset { hasGap = true }
        }
        position = .after(message)
        return true
    }

    /// Returns whether a gap was found since the last call.
    mutating func takeGap() -> Bool {
        defer { hasGap = false }
        return hasGap
    }

    /// Notes a mark before it is published.
    mutating func publishes(_ mark: String, at now: ContinuousClock.Instant) { marks[mark] = now }

    /// Notes that a mark was read, ours or another's.
    ///
    /// - Returns: whether the stream has now been read to its end for the first time.
    mutating func reads(_ mark: String) -> Bool {
        guard let at = marks.removeValue(forKey: mark) else { return false }
        // What came before this one is not waited for any more.
        marks = marks.filter { $0.value > at }
        defer { readUntil = max(readUntil ?? at, at) }
        return readUntil == nil
    }
}
