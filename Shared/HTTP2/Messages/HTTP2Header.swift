/// One header field of a request or a response.
package struct HTTP2Header: Hashable, Sendable {
    /// The field's name in lower case (RFC 9113 §8.2.1).
    package let name: String
    package let value: String
    /// Whether the field is a never-indexed literal (RFC 7541 §6.2.3): for secrets and for values that never repeat. On
    /// a received field, whether the client encoded it so.
    package let neverIndexed: Bool

    /// Creates a field; the name is lower-cased.
    package init(name: String, value: String, neverIndexed: Bool = false) {
        self.name = name.utf8.contains { (0x41...0x5A).contains($0) } ? name.lowercased() : name
        self.value = value
        self.neverIndexed = neverIndexed
    }
}
