extension String {
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
