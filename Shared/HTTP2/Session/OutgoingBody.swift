package import NIOCore

/// The body of an outgoing message, split into DATA frames as flow control allows.
package struct OutgoingBody {
    package enum Offer {
        /// The byte count for the next DATA frame; `last` sets END_STREAM on it.
        case bytes(Int, last: Bool)
        /// No bytes yet; the session is resumed when there are more.
        case later
    }

    private var bytes: [UInt8]
    private var offset = 0
    private var isComplete: Bool

    /// Creates a complete body, or one for `append` to extend.
    package init(_ bytes: [UInt8], isComplete: Bool) {
        self.bytes = bytes
        self.isComplete = isComplete
    }

    package var isEmpty: Bool { bytes.isEmpty }
    /// Whether more bytes may be appended.
    package var isOpen: Bool { !isComplete }

    package mutating func append(_ more: [UInt8], isLast: Bool) {
        bytes += more
        isComplete = isComplete || isLast
    }

    package func offer(maximum: Int) -> Offer {
        let count = min(maximum, bytes.count - offset)
        let last = isComplete && offset + count == bytes.count
        return count == 0 && !last ? .later : .bytes(count, last: last)
    }

    package mutating func write(count: Int, into output: inout ByteBuffer) {
        output.writeBytes(bytes[offset..<offset + count])
        offset += count
    }
}
