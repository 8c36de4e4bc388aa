/// A provider's own word, made fit for logs, headers, databases and outcomes.
package enum ProviderWord {
    /// The most bytes one may have. Outcomes of a whole push then stay within a body's limit, even where JSON escapes
    /// every byte.
    package static let maximumLength = 64

    /// `word` in visible ASCII, at most ``maximumLength`` of it: no controls, no NUL, nothing to quote or wrap.
    package static func printable(_ word: String) -> String {
        var text = word
        let isFit = text.withUTF8 { text in
            var others: UInt8 = 0
            for byte in text { others |= byte &- 0x21 < 0x5e ? 0 : 1 }
            return text.count <= maximumLength && others == 0
        }
        if isFit { return word }
        var kept = String.UnicodeScalarView()
        kept.append(
            contentsOf: word.unicodeScalars.lazy.filter { (0x21...0x7e).contains($0.value) }.prefix(maximumLength))
        return String(kept)
    }
}
