internal import AMQP

/// The position of a stream's reader: offsets of messages, and the marks that were read. Pure, and independent of the
/// wall clock.
struct StreamProgress {
    /// A message of a stream. The id detects another stream with the same offsets.
    struct Message: Hashable {
        let offset: Int64
        let id: String?
    }

    private enum Position {
        /// Nothing was read, or the stream is to be read from its beginning.
        case beginning
        case after(Message)
        /// Attached again at this message; no delivery since.
        case resuming(Message)
    }

    private var position = Position.beginning
    /// The first message of the stream at the last reading from its beginning.
    private var first: Message?
    /// Whether messages before the last delivered one may be missing, since the last ``takeGap()``.
    private var hasGap = false
    /// The publish times of this reader's unread marks.
    private var marks: [String: ContinuousClock.Instant] = [:]
    /// All messages confirmed before this time were read; `nil` before the first mark.
    private(set) var readUntil: ContinuousClock.Instant?

    /// Whether nothing was delivered since the last reattachment.
    var isResuming: Bool {
        if case .resuming = position { true } else { false }
    }

    /// The position for the next attachment: first the oldest message in the stream, later the last message read. The
    /// id of that message shows whether the stream is the same.
    ///
    /// After an attachment without deliveries, the next one starts at the beginning.
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

    /// Records a delivered message. A complete stream begins with offset 0. The broker drops the oldest messages, by age
    /// and by length: the first message then has another offset, and the last message that was read may be dropped.
    ///
    /// - Returns: Whether it belongs to the stream read so far. After `false` the next ``start()`` is the beginning.
    mutating func record(_ message: Message) -> Bool {
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

    /// Records a mark before it is published.
    mutating func willPublish(_ mark: String, at now: ContinuousClock.Instant) { marks[mark] = now }

    /// Records a mark that was read, from this or another reader.
    ///
    /// - Returns: Whether this is the first time that the stream was read to its end.
    mutating func recordMark(_ mark: String) -> Bool {
        guard let at = marks.removeValue(forKey: mark) else { return false }
        // Older marks add nothing.
        marks = marks.filter { $0.value > at }
        defer { readUntil = max(readUntil ?? at, at) }
        return readUntil == nil
    }
}
