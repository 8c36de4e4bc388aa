/// Refuses what no peer would take (RFC 9113 §8.2.1): checked here because nghttp2 sends fields as they are, and the
/// peer would end the stream without saying which.
enum FieldCheck {
    /// Letters, digits and the marks of RFC 9110 §5.6.2; a pseudo-header's colon is none of them.
    static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x5E...0x7A, 0x7C, 0x7E: true
                case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E: true
                default: false
                }
            }
    }

    static func isValue(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { isValue(UnsafeRawBufferPointer($0)) }
    }

    static func isValue(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Without branches the compiler checks many bytes at once.
        var bad: UInt8 = 0
        for byte in bytes { bad |= (byte < 0x20 && byte != 0x09) || byte == 0x7F ? 1 : 0 }
        return bad == 0
    }
}

extension HTTP2Header {
    func check() throws(HTTP2Error) {
        guard FieldCheck.isToken(name) else { throw .invalidRequest("“\(name)” is not a header name") }
        // The value is not repeated: it may be a secret.
        guard FieldCheck.isValue(value) else {
            throw .invalidRequest("the value of \(name) holds control characters")
        }
    }
}

extension HTTP2Request {
    func check() throws(HTTP2Error) {
        guard FieldCheck.isToken(method) else { throw .invalidRequest("the method is not a token") }
        guard path.utf8.first == UInt8(ascii: "/"), FieldCheck.isValue(path) else {
            throw .invalidRequest("the path does not start with a slash or holds control characters")
        }
        for header in headers { try header.check() }
    }
}
