import Foundation

/// `application/x-www-form-urlencoded`, of forms and queries (URL Standard §5).
enum FormCoding {
    /// The largest body of a form, in bytes.
    static let maximumSize = 16_384

    static func text(_ fields: [(String, String)]) -> String {
        fields.map { "\(encoded($0))=\(encoded($1))" }.joined(separator: "&")
    }

    /// Of a repeated name the first value.
    static func fields(of text: String) -> [String: String] {
        let pairs = text.split(separator: "&").map { pair -> (String, String) in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (decoded(parts[0]), parts.count > 1 ? decoded(parts[1]) : "")
        }
        return Dictionary(pairs) { first, _ in first }
    }

    /// A component of a path or query: all but letters, digits and `-._~` percent-encoded (RFC 3986 §2.3).
    static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let hex = String(byte, radix: 16, uppercase: true)
                result += "%" + (hex.count == 1 ? "0" : "") + hex
            }
        }
        return result
    }

    private static func decoded(_ text: Substring) -> String {
        text.replacing("+", with: " ").removingPercentEncoding ?? ""
    }
}
