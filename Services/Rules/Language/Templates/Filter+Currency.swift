import Foundation

extension Filter {
    /// Reads a code of ISO 4217, such as `EUR`: three capital letters.
    static func currencyCode(_ text: Substring) -> String? {
        text.utf8.count == 3 && text.utf8.allSatisfy((UInt8(ascii: "A")...UInt8(ascii: "Z")).contains)
            ? String(text) : nil
    }

    /// Formats an amount with the digits and the sign of the currency (Unicode CLDR).
    static func amount(_ value: Double, _ code: String, _ language: Language) -> String {
        value.formatted(.currency(code: code).locale(Locale(identifier: language.tag)))
    }
}
