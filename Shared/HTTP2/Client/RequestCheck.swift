extension HTTP2Request {
    /// Refuses what no peer would take (RFC 9113 §8.2.1): checked here because nghttp2 sends fields as they are, and
    /// the peer would end the stream without saying which.
    func check() throws(HTTP2Error) {
        guard Self.isToken(method) else { throw .invalidRequest("the method is not a token") }
        guard path.utf8.first == UInt8(ascii: "/"), Self.isFieldValue(path) else {
            throw .invalidRequest("the path does not start with a slash or holds control characters")
        }
        for header in headers {
            guard Self.isToken(header.name) else {
                throw .invalidRequest("“\(header.name)” is not a header name")
            }
            // The value is not repeated: it may be a secret.
            guard Self.isFieldValue(header.value) else {
                throw .invalidRequest("the value of \(header.name) holds control characters")
            }
        }
    }

    /// Letters, digits and the marks of RFC 9110 §5.6.2; a pseudo-header's colon is none of them.
    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x5E...0x7A, 0x7C, 0x7E: true
                case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E: true
                default: false
                }
            }
    }

    private static func isFieldValue(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            // Without branches the compiler checks many bytes at once.
            var bad: UInt8 = 0
            for byte in bytes { bad |= (byte < 0x20 && byte != 0x09) || byte == 0x7F ? 1 : 0 }
            return bad == 0
        }
    }
}
