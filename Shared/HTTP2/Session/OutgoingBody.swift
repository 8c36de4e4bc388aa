import NIOCore

/// The body of an outgoing message, split into DATA frames as flow control allows.
struct OutgoingBody {
    enum Offer {
        /// The byte count for the next DATA frame; `last` sets END_STREAM on it.
        case bytes(Int, last: Bool)
        /// No bytes yet; the session is resumed when there are more.
        case later
    }

    private var bytes: [UInt8]
    private var offset = 0
    private var isComplete: Bool

    /// Creates a complete body, or one for `append` to extend.
    init(_ bytes: [UInt8], isComplete: Bool) {
        self.bytes = bytes
        self.isComplete = isComplete
    }

    var isEmpty: Bool { bytes.isEmpty }
    /// Whether more bytes may be appended.
    var isOpen: Bool { !isComplete }

    mutating func append(_ more: [UInt8], isLast: Bool) {
        bytes += more
        isComplete = isComplete || isLast
    }

    func offer(maximum: Int) -> Offer {
        let count = min(maximum, bytes.count - offset)
        let last = isComplete && offset + count == bytes.count
        return count == 0 && !last ? .later : .bytes(count, last: last)
    }

    mutating func write(count: Int, into output: inout ByteBuffer) {
        output.writeBytes(bytes[offset..<offset + count])
        offset += count
    }

    /// Returns to the start, to send the message on another stream.
    mutating func rewind() {
        offset = 0
    }
}
