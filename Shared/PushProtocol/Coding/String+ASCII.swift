extension String {
    /// Whether it has nothing but visible ASCII: no space, no control, nothing to quote or wrap.
    package var isVisibleASCII: Bool {
        var text = self
        return text.withUTF8 { text in
            // Without branches the compiler checks many bytes at once.
            var others: UInt8 = 0
            for byte in text { others |= byte &- 0x21 < 0x5e ? 0 : 1 }
            return others == 0
        }
    }

    /// Whether it stands in JSON as it is, between quotes.
    package var isPlainJSON: Bool {
        var text = self
        return text.withUTF8 { PlainRun(in: $0, from: 0).end == $0.count }
    }

    /// The same in lower case, for what is known to be ASCII; most such texts are in lower case already, and cost
    /// nothing.
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
