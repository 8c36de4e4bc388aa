import PushProtocol

/// The plural categories of the Unicode CLDR.
package enum PluralCategory: String, Hashable, Sendable, CaseIterable {
    case zero, one, two, few, many, other
}

/// The operands of a number in plural rules (Unicode TR35, Language Plural Rules).
struct PluralOperands: Hashable, Sendable {
    /// The integer digits.
    var i: Int64
    /// The number of fraction digits.
    var v = 0
    /// The fraction digits, as an integer.
    var f: Int64 = 0

    /// - Returns: `nil` if the value is not a number or is out of range.
    init?(_ value: JSONValue) {
        switch value {
        case .int(let number):
            guard number != .min else { return nil }
            i = Swift.abs(number)
        case .double(let number):
            guard number.magnitude < 1e15 else { return nil }
            let parts = "\(number.magnitude)".split(separator: ".")
            guard let whole = Int64(parts[0]), parts.count == 2, let rest = Int64(parts[1]) else { return nil }
            i = whole
            // Swift prints a whole `Double` with `.0`; that zero is not a fraction digit.
            if rest != 0 { (v, f) = (parts[1].count, rest) }
        case .null, .bool, .string, .array, .object: return nil
        }
    }

    /// Whether the number has no fraction digits.
    var isWhole: Bool { v == 0 }

    /// Whether the number is whole and its remainder is in `range`.
    func whole(mod divisor: Int64 = .max, _ range: ClosedRange<Int64>) -> Bool {
        isWhole && range.contains(i % divisor)
    }
}

/// A language's plural rules.
///
/// The table restates the cardinal rules of the Unicode CLDR (supplemental data, plurals) for the languages that phones
/// are sold with. Foundation has no API for them outside Apple's platforms.
enum PluralRules: Hashable, Sendable {
    /// `other` for all numbers.
    case none
    /// `one` if i = 1 and v = 0.
    case one
    /// `one` if n = 1.
    case oneOrItsFraction
    /// `one` if i = 0 or n = 1.
    case upToOne
    /// `one` if i = 0 or i = 1.
    case zeroAndOne
    /// `zeroAndOne`, `one` and `oneOrItsFraction`, each with `many` for multiples of a million.
    case french, italian, spanish
    case danish, icelandic, macedonian, filipino
    case eastSlavic, polish, czech, southSlavic, slovenian, lithuanian, latvian, romanian
    case arabic, hebrew, irish, welsh, maltese

    /// Looks up the rules of a language; `nil` if the table lacks it.
    init?(_ language: Language) {
        if language.tag == "pt-PT" {
            self = .italian
            return
        }
        let name = String(language.tag.prefix { $0 != "-" })
        guard let rules = PluralRules.table.first(where: { $0.languages.contains(name) })?.rules else { return nil }
        self = rules
    }

    private static let table: [(languages: Set<String>, rules: PluralRules)] = [
        (["id", "ja", "jv", "km", "ko", "lo", "ms", "my", "su", "th", "vi", "yo", "yue", "zh"], .none),
        (["de", "en", "et", "fi", "fy", "gl", "ia", "nl", "sc", "sv", "sw", "ur", "yi"], .one),
        (
            [
                "af", "az", "bg", "el", "eo", "eu", "fo", "hu", "ka", "kk", "ku", "ky", "lb", "ml", "mn", "mr", "nb",
                "ne", "nn", "no", "or", "ps", "rm", "so", "sq", "ta", "te", "tk", "tr", "ug", "uz", "xh",
            ], .oneOrItsFraction
        ),
        (["am", "as", "bn", "fa", "gu", "hi", "kn", "zu"], .upToOne), (["ff", "hy", "kab"], .zeroAndOne),
        (["fr", "pt"], .french), (["ca", "it"], .italian), (["es"], .spanish), (["da"], .danish), (["is"], .icelandic),
        (["mk"], .macedonian), (["fil", "tl"], .filipino), (["be", "ru", "uk"], .eastSlavic), (["pl"], .polish),
        (["cs", "sk"], .czech), (["bs", "hr", "sh", "sr"], .southSlavic), (["sl"], .slovenian), (["lt"], .lithuanian),
        (["lv"], .latvian), (["mo", "ro"], .romanian), (["ar"], .arabic), (["he", "iw"], .hebrew), (["ga"], .irish),
        (["cy"], .welsh), (["mt"], .maltese),
    ]

    /// The categories that the language has.
    var categories: [PluralCategory] {
        switch self {
        case .none: [.other]
        case .one, .oneOrItsFraction, .upToOne, .zeroAndOne, .danish, .icelandic, .macedonian, .filipino:
            [.one, .other]
        case .french, .italian, .spanish: [.one, .many, .other]
        case .eastSlavic, .polish, .czech, .lithuanian: [.one, .few, .many, .other]
        case .southSlavic, .romanian: [.one, .few, .other]
        case .slovenian: [.one, .two, .few, .other]
        case .latvian: [.zero, .one, .other]
        case .hebrew: [.one, .two, .other]
        case .arabic, .welsh: [.zero, .one, .two, .few, .many, .other]
        case .irish, .maltese: [.one, .two, .few, .many, .other]
        }
    }

    func category(_ n: PluralOperands) -> PluralCategory {
        switch self {
        case .none: .other
        case .one: n.whole(1...1) ? .one : .other
        case .oneOrItsFraction: n.whole(1...1) ? .one : .other
        case .upToOne: n.i == 0 || n.whole(1...1) ? .one : .other
        case .zeroAndOne: n.i <= 1 ? .one : .other
        case .french: n.i <= 1 ? .one : millions(n)
        case .italian, .spanish: n.whole(1...1) ? .one : millions(n)
        case .danish: n.whole(1...1) || !n.isWhole && n.i <= 1 ? .one : .other
        case .icelandic: endsInOne(n.isWhole ? n.i : n.f) ? .one : .other
        case .macedonian: endsInOne(n.isWhole ? n.i : n.f) ? .one : .other
        case .filipino: filipino(n)
        case .eastSlavic: eastSlavic(n)
        case .polish: polish(n)
        case .czech: czech(n)
        case .southSlavic: southSlavic(n.isWhole ? n.i : n.f)
        case .slovenian: slovenian(n)
        case .lithuanian: lithuanian(n)
        case .latvian: latvian(n)
        case .romanian: romanian(n)
        case .arabic: arabic(n)
        case .hebrew: hebrew(n)
        case .irish: irish(n)
        case .welsh: welsh(n)
        case .maltese: maltese(n)
        }
    }

    private func millions(_ n: PluralOperands) -> PluralCategory {
        n.i != 0 && n.whole(mod: 1_000_000, 0...0) ? .many : .other
    }

    private func endsInOne(_ number: Int64) -> Bool { number % 10 == 1 && number % 100 != 11 }

    /// Whether a number ends in 2–4, but not in 12–14.
    private func isFew(_ number: Int64) -> Bool {
        (2...4).contains(number % 10) && !(12...14).contains(number % 100)
    }

    private func eastSlavic(_ n: PluralOperands) -> PluralCategory {
        guard n.isWhole else { return .other }
        return endsInOne(n.i) ? .one : isFew(n.i) ? .few : .many
    }

    private func polish(_ n: PluralOperands) -> PluralCategory {
        guard n.isWhole else { return .other }
        if n.i == 1 { return .one }
        return isFew(n.i) ? .few : .many
    }

    private func czech(_ n: PluralOperands) -> PluralCategory {
        guard n.isWhole else { return .many }
        if n.i == 1 { return .one }
        return (2...4).contains(n.i) ? .few : .other
    }

    private func slovenian(_ n: PluralOperands) -> PluralCategory {
        guard n.isWhole else { return .few }
        switch n.i % 100 {
        case 1: return .one
        case 2: return .two
        case 3...4: return .few
        default: return .other
        }
    }

    private func romanian(_ n: PluralOperands) -> PluralCategory {
        if n.whole(1...1) { return .one }
        return !n.isWhole || n.i == 0 || (1...19).contains(n.i % 100) ? .few : .other
    }

    private func hebrew(_ n: PluralOperands) -> PluralCategory {
        if n.whole(1...1) || n.i == 0 && !n.isWhole { return .one }
        return n.whole(2...2) ? .two : .other
    }

    private func filipino(_ n: PluralOperands) -> PluralCategory {
        let last = (n.isWhole ? n.i : n.f) % 10
        return n.whole(1...3) || ![4, 6, 9].contains(last) ? .one : .other
    }

    private func southSlavic(_ number: Int64) -> PluralCategory {
        endsInOne(number) ? .one : isFew(number) ? .few : .other
    }

    private func lithuanian(_ n: PluralOperands) -> PluralCategory {
        guard n.isWhole else { return .many }
        if (11...19).contains(n.i % 100) { return .other }
        return n.i % 10 == 1 ? .one : n.i % 10 == 0 ? .other : .few
    }

    private func latvian(_ n: PluralOperands) -> PluralCategory {
        guard n.isWhole else {
            if n.v == 2, (11...19).contains(n.f) { return .zero }
            return n.f % 10 == 1 ? .one : .other
        }
        if n.i % 10 == 0 || (11...19).contains(n.i % 100) { return .zero }
        return n.i % 10 == 1 ? .one : .other
    }

    private func arabic(_ n: PluralOperands) -> PluralCategory {
        guard n.isWhole else { return .other }
        switch (n.i, n.i % 100) {
        case (0, _): return .zero
        case (1, _): return .one
        case (2, _): return .two
        case (_, 3...10): return .few
        case (_, 11...99): return .many
        default: return .other
        }
    }

    private func irish(_ n: PluralOperands) -> PluralCategory {
        guard n.isWhole else { return .other }
        switch n.i {
        case 1: return .one
        case 2: return .two
        case 3...6: return .few
        case 7...10: return .many
        default: return .other
        }
    }

    private func welsh(_ n: PluralOperands) -> PluralCategory {
        guard n.isWhole else { return .other }
        switch n.i {
        case 0: return .zero
        case 1: return .one
        case 2: return .two
        case 3: return .few
        case 6: return .many
        default: return .other
        }
    }

    private func maltese(_ n: PluralOperands) -> PluralCategory {
        guard n.isWhole else { return .other }
        switch (n.i, n.i % 100) {
        case (1, _): return .one
        case (2, _): return .two
        case (0, _), (_, 3...10): return .few
        case (_, 11...19): return .many
        default: return .other
        }
    }
}
