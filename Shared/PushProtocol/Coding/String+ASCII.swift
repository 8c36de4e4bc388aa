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
