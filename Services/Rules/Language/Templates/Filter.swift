import PushProtocol

/// A function that a template applies to a value: `{{filter(path)}}`. Nested filters apply from the inside out.
package enum Filter: Hashable, Sendable {
    /// Allows an absent or null value: it renders as nothing. A data member that is only such a variable is left out.
    case optional
    /// Shortens a text to `limit` grapheme clusters; a shortened text ends in `…`.
    case excerpt(limit: Int)
    /// Metres as kilometres with at most one decimal: `3000` → `3`.
    case km
    /// Metres, shown in metres or kilometres with the unit: `500 m`, `3 km`.
    case distance
    /// Thousands grouped: `12,345`.
    case number
    /// An amount in a currency (ISO 4217), in the recipient's language: `€12.50`, `12,50 €`.
    case currency(code: String)
    case capitalized
    case uppercased
    case lowercased
    /// The number of elements of a list.
    case count
    case first
    case last
    /// A date or a time in the recipient's language and time zone.
    case date
    case time
    case dateTime
    /// Selects the plural form of a number in the template's language. The set has the forms in the section.
    case plural(Set<PluralCategory>)

    /// The limit of `excerpt` without a number, in grapheme clusters.
    static let defaultExcerpt = 120

    /// The names that a template may use. `excerpt` can be followed by a number of characters (`excerpt80`), `currency` is
    /// followed by a code.
    static let names = [
        "optional", "excerpt", "km", "distance", "number", "currencyEUR", "capitalized", "uppercased", "lowercased",
        "count", "first",
        "last", "date", "time", "datetime", "plural",
    ]

    init?(name: String) {
        switch name {
        case "optional": self = .optional
        case "excerpt": self = .excerpt(limit: Filter.defaultExcerpt)
        case "km": self = .km
        case "distance": self = .distance
        case "number": self = .number
        case "capitalized": self = .capitalized
        case "uppercased": self = .uppercased
        case "lowercased": self = .lowercased
        case "count": self = .count
        case "first": self = .first
        case "last": self = .last
        case "date": self = .date
        case "time": self = .time
        case "datetime": self = .dateTime
        case "plural": self = .plural([])
        default:
            if name.hasPrefix("excerpt"), let limit = Int(name.dropFirst("excerpt".count)), limit > 0 {
                self = .excerpt(limit: limit)
            } else if name.hasPrefix("currency"), let code = Filter.currencyCode(name.dropFirst("currency".count)) {
                self = .currency(code: code)
            } else {
                return nil
            }
        }
    }

    var name: String {
        switch self {
        case .optional: "optional"
        case .excerpt(Filter.defaultExcerpt): "excerpt"
        case .excerpt(let limit): "excerpt\(limit)"
        case .km: "km"
        case .distance: "distance"
        case .number: "number"
        case .currency(let code): "currency\(code)"
        case .capitalized: "capitalized"
        case .uppercased: "uppercased"
        case .lowercased: "lowercased"
        case .count: "count"
        case .first: "first"
        case .last: "last"
        case .date: "date"
        case .time: "time"
        case .dateTime: "datetime"
        case .plural: "plural"
        }
    }

    /// The expected input, for error messages.
    var input: String {
        switch self {
        case .optional: "any value"
        case .excerpt, .capitalized, .uppercased, .lowercased: "a string"
        case .km, .distance, .number, .currency, .plural: "a number"
        case .count: "a list"
        case .first, .last: "a list that is not empty"
        case .date: WrittenDate.expectation
        case .time, .dateTime: "a time (2026-03-31T09:00:00Z)"
        }
    }

    /// Returns the filtered value, or `nil` if the filter does not accept the value.
    func apply(_ value: JSONValue, _ localization: Localization) -> JSONValue? {
        switch self {
        case .optional: value
        case .excerpt(let limit): value.string.map { .string($0.excerpt(limit)) }
        case .km: value.number.map { .string(Filter.decimal($0 / 1000)) }
        case .distance: value.number.map { .string(Filter.distance($0)) }
        case .number: value.number.map { .string(Filter.grouped($0)) }
        case .currency(let code): value.number.map { .string(Filter.amount($0, code, localization.language)) }
        case .capitalized: value.string.map { .string($0.prefix(1).uppercased() + $0.dropFirst()) }
        case .uppercased: value.string.map { .string($0.uppercased()) }
        case .lowercased: value.string.map { .string($0.lowercased()) }
        case .count: value.array.map { .int(Int64($0.count)) }
        case .first: value.array?.first
        case .last: value.array?.last
        case .date: WrittenDate(value)?.text(localization, hasDate: true, hasTime: false).map(JSONValue.string)
        case .time: WrittenDate(value)?.text(localization, hasDate: false, hasTime: true).map(JSONValue.string)
        case .dateTime: WrittenDate(value)?.text(localization, hasDate: true, hasTime: true).map(JSONValue.string)
        case .plural(let written): PluralOperands(value).map { Filter.form(of: $0, written, localization.language) }
        }
    }

    var isPlural: Bool {
        if case .plural = self { true } else { false }
    }

    /// Whether the result depends on the recipient's time zone.
    var needsZone: Bool {
        switch self {
        case .date, .time, .dateTime: true
        case .optional, .excerpt, .km, .distance, .number, .currency, .capitalized, .uppercased, .lowercased, .count,
            .first, .last, .plural:
            false
        }
    }

    /// Whether the result depends on the recipient's language and region.
    var needsRegion: Bool {
        if case .currency = self { true } else { needsZone }
    }
}

// MARK: - Plurals

extension Filter {
    /// Returns an object with `true` for the selected form and `false` for the others.
    private static func form(
        of number: PluralOperands, _ written: Set<PluralCategory>, _ language: Language
    ) -> JSONValue {
        let category = PluralRules(language)?.category(number) ?? .other
        let selected = written.contains(category) ? category : .other
        return .object(
            Dictionary(PluralCategory.allCases.map { ($0.rawValue, .bool($0 == selected)) }) { first, _ in first })
    }
}

extension Filter {
    private static func distance(_ metres: Double) -> String {
        metres < 1000 ? "\(decimal(metres.rounded())) m" : "\(decimal(metres / 1000)) km"
    }

    /// Formats a number with at most one decimal; a zero decimal is left out.
    private static func decimal(_ value: Double) -> String {
        let tenths = (value * 10).rounded()
        guard tenths.magnitude < 1e15 else { return "\(value)" }
        let (whole, tenth) = Int64(tenths).quotientAndRemainder(dividingBy: 10)
        let sign = whole == 0 && tenth < 0 ? "-" : ""
        return tenth == 0 ? "\(whole)" : "\(sign)\(whole).\(tenth.magnitude)"
    }

    private static func grouped(_ value: Double) -> String {
        guard value.magnitude < 1e15 else { return "\(value)" }
        let text = decimal(value)
        let sign = text.hasPrefix("-") ? "-" : ""
        let parts = text.drop { $0 == "-" }.split(separator: ".")
        let digits = Array(parts[0])
        let groups = stride(from: digits.count, to: 0, by: -3).map { String(digits[max(0, $0 - 3)..<$0]) }
        return sign
            + ([groups.reversed().joined(separator: ",")] + parts.dropFirst().map(String.init)).joined(separator: ".")
    }
}

extension String {
    /// Shortens the text to at most `limit` grapheme clusters; a shortened text ends in `…`.
    package func excerpt(_ limit: Int) -> String {
        guard let cut = index(startIndex, offsetBy: limit, limitedBy: endIndex), cut != endIndex else { return self }
        var kept = self[..<index(before: cut)]
        while kept.last?.isWhitespace == true { kept.removeLast() }
        return kept + "…"
    }

    /// Shortens the text to at most `limit` bytes of UTF-8, at least 3; a shortened text ends in `…`.
    ///
    /// The cut can be inside a grapheme cluster, because a cluster has no maximum size.
    func excerpt(bytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        let ellipsis = "…"
        var kept = String.UnicodeScalarView()
        var size = ellipsis.utf8.count
        for scalar in unicodeScalars {
            size += UTF8.width(scalar)
            guard size <= limit else { break }
            kept.append(scalar)
        }
        return String(kept) + ellipsis
    }
}
