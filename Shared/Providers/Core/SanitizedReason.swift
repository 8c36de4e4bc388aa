import PushProtocol

/// Sanitizes a provider's reason for logs, headers, databases and outcomes.
package enum SanitizedReason {
    /// The longest reason in bytes. Keeps the outcomes of a full push within the message size limit, even when JSON
    /// escapes every byte.
    package static let maximumLength = 64

    /// The visible ASCII characters of `word`, truncated to ``maximumLength``.
    package static func printable(_ word: String) -> String {
        if word.utf8.count <= maximumLength, word.isVisibleASCII { return word }
        var kept = String.UnicodeScalarView()
        kept.append(
            contentsOf: word.unicodeScalars.lazy.filter { (0x21...0x7e).contains($0.value) }.prefix(maximumLength))
        return String(kept)
    }
}
