extension String {
    /// Whether the string has visible ASCII only: no spaces, no control characters.
    package var isVisibleASCII: Bool {
        var text = self
        return text.withUTF8 { text in
            // A loop without branches is vectorized.
            var others: UInt8 = 0
            for byte in text { others |= byte &- 0x21 < 0x5e ? 0 : 1 }
            return others == 0
        }
    }

    /// Whether the string has 1 to `limit` Unicode scalars, and no control characters below the space.
    package func isFreeText(upTo limit: Int) -> Bool {
        (1...limit).contains(unicodeScalars.count) && !utf8.contains { $0 < 0x20 }
    }

    /// Whether the string has no ASCII control characters, DEL included.
    var hasNoControls: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } }

    /// The string in lower case. Requires ASCII; returns the same string when it is already in lower case.
    package var lowercasedASCII: String {
        var text = self
        let hasUpper = text.withUTF8 { text in
            var upper: UInt8 = 0
            for byte in text { upper |= byte &- UInt8(ascii: "A") < 26 ? 1 : 0 }
            return upper != 0
        }
        return hasUpper ? lowercased() : self
    }
}
