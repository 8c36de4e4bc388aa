import PushProtocol

/// A provider's own word, made fit for logs, headers, databases and outcomes.
package enum ProviderWord {
    /// The most bytes one may have. Outcomes of a whole push then stay within a body's limit, even where JSON escapes
    /// every byte.
    package static let maximumLength = 64

    /// `word` in visible ASCII, at most ``maximumLength`` of it: no controls, no NUL, nothing to quote or wrap.
    package static func printable(_ word: String) -> String {
        if word.utf8.count <= maximumLength, word.isVisibleASCII { return word }
        var kept = String.UnicodeScalarView()
        kept.append(
            contentsOf: word.unicodeScalars.lazy.filter { (0x21...0x7e).contains($0.value) }.prefix(maximumLength))
        return String(kept)
    }
}
