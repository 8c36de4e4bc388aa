/// A name that is a text with rules of its own. It is coded, shown and ordered as that text, and a text that breaks the
/// rules is never quoted in an error.
package protocol CheckedText: RawRepresentable<String>, Codable, Hashable, Sendable, Comparable,
    CustomStringConvertible
{
    /// What it may be, as a sentence for who sent something else.
    static var rule: String { get }
}

extension CheckedText {
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
