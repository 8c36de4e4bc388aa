import Logging

/// Removes secrets from log lines, by the name of the metadata key and by the form of the text.
///
/// This is the second safeguard. The first: types of secrets print themselves redacted (`DeviceToken`).
enum Redaction {
    static let mask = "‹redacted›"

    /// Whether a metadata key names a secret. `routing_key` and other keys that are not cryptographic do not.
    static func isSecret(key: String) -> Bool {
        let key = key.lowercased()
        return fragments.contains { key.contains($0) } || names.contains(key)
    }

    private static let fragments = [
        "token", "authorization", "password", "passwd", "secret", "credential", "cookie", "private_key", "private-key",
        "privatekey", "api_key", "api-key", "apikey", "operator_key", "operator-key",
    ]
    private static let names: Set<String> = ["key", "jwt", "bearer", "signature"]

    static func redacted(_ metadata: Logger.Metadata) -> Logger.Metadata {
        var result = metadata
        for (key, value) in metadata { result[key] = isSecret(key: key) ? .string(mask) : redacted(value) }
        return result
    }

    private static func redacted(_ value: Logger.MetadataValue) -> Logger.MetadataValue {
        switch value {
        case .string(let text): .string(redacted(text))
        case .stringConvertible(let value): .string(redacted(value.description))
        case .array(let values): .array(values.map(redacted))
        case .dictionary(let members): .dictionary(redacted(members))
        }
    }

    /// Masks the passwords of URLs and JSON Web Tokens in a text.
    static func redacted(_ text: String) -> String {
        var bytes = Array(text.utf8)
        let changed = [maskPasswords(&bytes), maskWebTokens(&bytes)].contains(true)
        return changed ? String(decoding: bytes, as: UTF8.self) : text
    }

    /// Masks passwords in `scheme://user:password@host`: the text between the colon and the last `@` before the path.
    private static func maskPasswords(_ bytes: inout [UInt8]) -> Bool {
        var changed = false
        var start = 0
        while let separator = find("://", in: bytes, from: start) {
            let authority = separator + 3
            let end = bytes[authority...].firstIndex { isWhitespace($0) || "/?#\"'<>".utf8.contains($0) } ?? bytes.count
            start = end
            guard let at = bytes[authority..<end].lastIndex(of: UInt8(ascii: "@")),
                let colon = bytes[authority..<at].firstIndex(of: UInt8(ascii: ":"))
            else { continue }
            bytes.replaceSubrange((colon + 1)..<at, with: mask.utf8)
            start = colon + 1 + mask.utf8.count
            changed = true
        }
        return changed
    }

    /// Masks JSON Web Tokens: three base64url parts, the first of which encodes the start of a JSON object.
    private static func maskWebTokens(_ bytes: inout [UInt8]) -> Bool {
        var changed = false
        var start = 0
        while let token = find("eyJ", in: bytes, from: start) {
            let end = bytes[token...].firstIndex { !isTokenCharacter($0) } ?? bytes.count
            start = end
            guard bytes[token..<end].count(where: { $0 == UInt8(ascii: ".") }) >= 2 else { continue }
            bytes.replaceSubrange(token..<end, with: mask.utf8)
            start = token + mask.utf8.count
            changed = true
        }
        return changed
    }

    private static func find(_ needle: StaticString, in bytes: [UInt8], from start: Int) -> Int? {
        let needle = needle.withUTF8Buffer { Array($0) }
        var index = start
        while index + needle.count <= bytes.count {
            guard let first = bytes[index...].firstIndex(of: needle[0]), first + needle.count <= bytes.count else {
                return nil
            }
            if bytes[first..<(first + needle.count)].elementsEqual(needle) { return first }
            index = first + 1
        }
        return nil
    }

    private static func isWhitespace(_ byte: UInt8) -> Bool { byte <= 0x20 }

    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}
