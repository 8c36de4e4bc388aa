/// One header field of a request or a response.
package struct HTTP2Header: Hashable, Sendable {
    /// The field's name in lower case, as HTTP/2 demands (RFC 9113 §8.2.1).
    package let name: String
    package let value: String
    /// Sent: encode as a never-indexed literal (RFC 7541 §6.2.3), for secrets and for values that never repeat.
    /// Received by a server: the client encoded it so, which is all of the HPACK form that survives decoding.
    package let neverIndexed: Bool

    /// Makes a field; an upper-case name is lower-cased.
    package init(name: String, value: String, neverIndexed: Bool = false) {
        self.name = name.utf8.contains { (0x41...0x5A).contains($0) } ? name.lowercased() : name
        self.value = value
        self.neverIndexed = neverIndexed
    }
}

/// Header fields in the order they were received, found by name.
package struct HTTP2Headers: Hashable, Sendable {
    package private(set) var fields: [HTTP2Header]

    package init(_ fields: [HTTP2Header] = []) {
        self.fields = fields
    }

    /// The first value of the field with this name, which must be given in lower case.
    package subscript(name: String) -> String? {
        fields.first { $0.name == name }?.value
    }

    /// Every value of the field with this name, in order.
    package func values(of name: String) -> [String] {
        fields.filter { $0.name == name }.map(\.value)
    }

    mutating func append(_ field: HTTP2Header) {
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
