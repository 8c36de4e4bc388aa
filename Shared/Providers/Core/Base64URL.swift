import FoundationEssentials

/// Base64 with the URL alphabet and no padding (RFC 7515 §2).
enum Base64URL {
    static func text(of bytes: some Sequence<UInt8>) -> String {
        Data(bytes).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// Decodes; `nil` for padding, white space, or any other character outside the alphabet.
    static func bytes(of text: String) -> [UInt8]? {
        guard isAlphabet(text) else { return nil }
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        let standard = text.replacing("-", with: "+").replacing("_", with: "/") + padding
        guard let data = Data(base64Encoded: standard) else { return nil }
        let bytes = [UInt8](data)
        // Unused bits of the last character are zero, so each value has one spelling.
        return Self.text(of: bytes) == text ? bytes : nil
    }

    /// Whether `text` has only characters of the alphabet.
    static func isAlphabet(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
