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

/// Header fields in the order received, with look-up by name.
package struct HTTP2Headers: Hashable, Sendable {
    package private(set) var fields: [HTTP2Header]

    package init(_ fields: [HTTP2Header] = []) {
        self.fields = fields
    }

    /// The first value of a field. The name must be in lower case.
    package subscript(name: String) -> String? {
        fields.first { $0.name == name }?.value
    }

    /// All values of a field, in order. The name must be in lower case.
    package func values(of name: String) -> [String] {
        fields.filter { $0.name == name }.map(\.value)
    }

    package mutating func append(_ field: HTTP2Header) {
        fields.append(field)
    }
}

extension HTTP2Headers: RandomAccessCollection {
    package var startIndex: Int { fields.startIndex }
    package var endIndex: Int { fields.endIndex }
    package subscript(position: Int) -> HTTP2Header { fields[position] }
}

extension HTTP2Headers: ExpressibleByArrayLiteral {
    package init(arrayLiteral elements: HTTP2Header...) {
        self.init(elements)
    }
}
