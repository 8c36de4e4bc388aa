/// Rejects malformed fields (RFC 9113 §8.2.1). nghttp2 sends fields unchecked, and a peer's RST_STREAM would not name
/// the malformed one.
enum HeaderValidation {
    /// Whether `text` is a token of RFC 9110 §5.6.2. A pseudo-header's colon is not a token character.
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
        // Branch-free, so that the compiler vectorises the loop.
        var bad: UInt8 = 0
        for byte in bytes { bad |= (byte < 0x20 && byte != 0x09) || byte == 0x7F ? 1 : 0 }
        return bad == 0
    }
}

extension HTTP2Header {
    func check() throws(HTTP2Error) {
        guard HeaderValidation.isToken(name) else { throw .invalidRequest("“\(name)” is not a header name") }
        // The error omits the value, which may be a secret.
        guard HeaderValidation.isValue(value) else {
            throw .invalidRequest("the value of \(name) contains control characters")
        }
    }
}
