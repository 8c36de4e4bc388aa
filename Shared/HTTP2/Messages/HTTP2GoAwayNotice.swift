/// A received GOAWAY frame.
package struct HTTP2GoAwayNotice: Hashable, Sendable {
    /// The last stream of ours that the peer may process; 2^31-1 announces a graceful shutdown (RFC 9113 §6.8).
    package let lastStream: Int32
    package let code: HTTP2ErrorCode
    /// The debug data as text, at most 1 KiB; JSON from APNs, may be empty.
    package let debugText: String
}

extension HTTP2GoAwayNotice: CustomStringConvertible {
    package var description: String {
        let text = debugText.isEmpty ? "" : " “\(debugText)”"
        return "GOAWAY \(code), last stream \(lastStream)\(text)"
    }
}
