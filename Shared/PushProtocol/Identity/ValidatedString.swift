/// A string with a validation rule. It is encoded, printed and sorted as the string. Errors never quote an invalid
/// value.
package protocol ValidatedString: RawRepresentable<String>, Codable, Hashable, Sendable, Comparable,
    CustomStringConvertible
{
    /// The rule, as a sentence for error messages.
    static var rule: String { get }
}

extension ValidatedString {
    package var description: String { rawValue }

    package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let value = Self(rawValue: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: Self.rule)
        }
        self = value
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}
