import NIOCore

/// The body of one outgoing message, framed piece by piece as flow control allows.
struct OutgoingBody {
    enum Offer {
        /// This many bytes may go into the next DATA frame; `last` ends the stream with it.
        case bytes(Int, last: Bool)
        /// Nothing now; the session is resumed when there is more.
        case later
    }

    private var bytes: [UInt8]
    private var offset = 0
    private var isComplete: Bool

    /// A body that is whole from the start, or one that is appended to until `complete`.
    init(_ bytes: [UInt8], isComplete: Bool) {
        self.bytes = bytes
        self.isComplete = isComplete
    }

    var isEmpty: Bool { bytes.isEmpty }
    /// More may still be appended.
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

    /// Back to the beginning, for sending the same message on another stream.
    mutating func rewind() {
        offset = 0
    }
}
