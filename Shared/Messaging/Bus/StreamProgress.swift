internal import FoundationEssentials
internal import PushProtocol

/// How far a stream has been read, as the marks that were published to it tell. Pure.
struct StreamProgress {
    /// How much further back it is read again after an interruption: more than clocks differ.
    static let overlap = Duration.seconds(3600)

    private let memory: Duration
    /// When those of our marks were published that were not read yet.
    private var marks: [String: Timestamp] = [:]
    /// Everything that the broker confirmed until then has been read; `nil` before the first mark.
    private(set) var readUntil: Timestamp?

    /// - Parameter memory: from how long ago on the stream is read at first.
    init(memory: Duration) { self.memory = memory }

    /// From when on to read now. By time, since an offset says nothing in a stream that was deleted and declared anew.
    func start(now: Timestamp) -> Timestamp {
        let earliest = now - memory
        guard let readUntil else { return earliest }
        return max(earliest, readUntil - Self.overlap)
    }

    /// Notes a mark before it is published.
    mutating func publishes(_ mark: String, at now: Timestamp) { marks[mark] = now }

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
