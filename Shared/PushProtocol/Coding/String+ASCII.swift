extension String {
    /// The same in lower case, for what is known to be ASCII; most such texts are in lower case already, and cost
    /// nothing.
    package var lowercasedASCII: String {
        utf8.contains { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) } ? lowercased() : self
    }
}
