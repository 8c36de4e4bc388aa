/// The language and time zone of a rendered text.
package struct Localization: Hashable, Sendable {
    /// Determines date formats: the user's language, or the rule file's.
    package var language: Language
    package var zone: Zone

    package init(
        language: Language, zone: Zone
    ) {
        self.language = language
        self.zone = zone
    }

    static let plain = Localization(language: .english, zone: .utc)
}

/// A BCP 47 language tag: `de`, `pt-BR`, `zh-Hant-HK`.
package struct Language: Hashable, Sendable {
    /// In conventional letter case: `zh-Hant-HK`.
    package let tag: String

    static let english = Language(unchecked: "en")

    private init(unchecked tag: String) { self.tag = tag }

    /// Reads a tag. An underscore counts as a hyphen, because some platforms write it.
    ///
    /// - Returns: `nil` unless all subtags have 1 to 8 letters or digits, and the first has 2 to 8 letters.
    package init?(_ text: String) {
        let parts = text.replacing("_", with: "-").split(separator: "-", omittingEmptySubsequences: false)
        guard text.utf8.count <= 35, let first = parts.first, (2...8).contains(first.utf8.count),
            first.utf8.allSatisfy(\.isLetter),
            parts.allSatisfy({ (1...8).contains($0.utf8.count) && $0.utf8.allSatisfy { $0.isLetter || $0.isDigit } })
        else { return nil }
        let extensions = parts.firstIndex { $0.utf8.count == 1 } ?? parts.endIndex
        tag = parts.enumerated().map { index, part in
            switch part.utf8.count {
            case _ where index == 0 || index > extensions: part.lowercased()
            case 2: part.uppercased()
            case 4 where part.utf8.allSatisfy(\.isLetter): part.prefix(1).uppercased() + part.dropFirst().lowercased()
            default: part.lowercased()
            }
        }.joined(separator: "-")
    }

    /// This language and its fallbacks, the nearest first (RFC 4647 §3.4).
    ///
    /// Scripts are not dropped: readers of `zh-Hant` may not read `zh`.
    var chain: [Language] {
        var chain: [Language] = []
        var parts = tag.split(separator: "-").map(String.init)
        while let last = parts.last {
            // A one-character subtag goes together with the subtag after it (RFC 4647 §3.4).
            if last.utf8.count > 1 || parts.count == 1 {
                chain.append(Language(unchecked: parts.joined(separator: "-")))
                if let script = Language.script[chain[chain.count - 1].tag] {
                    chain.append(Language(unchecked: script))
                    break
                }
            }
            if parts.count == 2, last.utf8.count == 4, last.utf8.allSatisfy(\.isLetter) { break }
            parts.removeLast()
        }
        return chain
    }

    /// Regions whose script differs from the default script of the language.
    private static let script = ["zh-TW": "zh-Hant", "zh-HK": "zh-Hant", "zh-MO": "zh-Hant"]

    /// Returns the nearest available language of ``chain``; `nil` if none is available.
    package func choice(of available: some Collection<Language>) -> Language? { chain.first(where: available.contains) }
}

extension UInt8 {
    fileprivate var isLetter: Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20)
    }

    fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}

extension Language: Decodable {
    package init(from decoder: any Decoder) throws {
        self = try decoder.decodeText("a language tag of BCP 47 such as de or pt-BR") { Language($0) }
    }
}
