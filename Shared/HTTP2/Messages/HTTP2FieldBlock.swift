/// Header fields shared by many requests, validated and laid out once.
package struct HTTP2FieldBlock: Sendable {
    struct Span {
        var name: Int
        var value: Int
        var neverIndexed: Bool
    }

    /// All names and values, concatenated.
    let bytes: [UInt8]
    let spans: [Span]

    /// Lays out `fields`; throws `invalidRequest` for a malformed field.
    package init(_ fields: [HTTP2Header]) throws(HTTP2Error) {
        for field in fields { try field.check() }
        self.init(checked: fields)
    }

    /// The pseudo-headers common to all requests of a client (RFC 9113 §8.3.1).
    init(scheme: String, authority: String) {
        self.init(checked: [
            HTTP2Header(name: ":scheme", value: scheme), HTTP2Header(name: ":authority", value: authority),
        ])
    }

    private init(checked fields: [HTTP2Header]) {
        var bytes: [UInt8] = []
        var spans: [Span] = []
        spans.reserveCapacity(fields.count)
        for field in fields {
            let (name, value) = (field.name.utf8, field.value.utf8)
            bytes += name
            bytes += value
            spans.append(Span(name: name.count, value: value.count, neverIndexed: field.neverIndexed))
        }
        self.bytes = bytes
        self.spans = spans
    }
}
