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

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    /// A component of a path or query: all but letters, digits and `-._~` percent-encoded (RFC 3986 §2.3).
    static func encoded(_ text: String) -> String {
        // UTF-8 always encodes.
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
    }

    private static func decoded(_ text: Substring) -> String {
        text.replacing("+", with: " ").removingPercentEncoding ?? ""
    }
}
