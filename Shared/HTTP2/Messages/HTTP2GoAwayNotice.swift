/// A GOAWAY frame as it was received.
package struct HTTP2GoAwayNotice: Hashable, Sendable {
    /// The last of our streams the peer may have acted on; 2^31-1 announces a graceful end without deciding anything.
    package let lastStream: Int32
    package let code: HTTP2ErrorCode
    /// The debug data as text, at most 1 KiB of it: JSON, plain text or nothing, as the peer pleases.
    package let debugText: String

    package init(lastStream: Int32, code: HTTP2ErrorCode, debugText: String) {
        self.lastStream = lastStream
        self.code = code
        self.debugText = debugText
    }
}

extension HTTP2GoAwayNotice: CustomStringConvertible {
    package var description: String {
        let text = debugText.isEmpty ? "" : " “\(debugText)”"
        return "GOAWAY \(code), last stream \(lastStream)\(text)"
    }
}
