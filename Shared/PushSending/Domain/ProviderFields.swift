/// The header fields of an answer as they came: name, NUL, value, NUL, with names in lower case. Most answers are read
/// for none or one of them.
package struct ProviderFields: Hashable, Sendable {
    private let text: [UInt8]

    package init(nulSeparated text: [UInt8]) { self.text = text }

    /// `fields`, ordered by name.
    package init(_ fields: [String: String]) {
        text = fields.sorted { $0.key < $1.key }.flatMap { Array($0.utf8) + [0] + Array($1.utf8) + [0] }
    }

    /// The first value of the field `name` (lower case).
    package subscript(name: String) -> String? {
        var name = name
        return name.withUTF8 { name in
            text.withUnsafeBufferPointer { text in
                var rest = text[...]
                while let field = Self.upToNUL(in: &rest), let value = Self.upToNUL(in: &rest) {
                    if field.elementsEqual(name) {
                        return String(decoding: UnsafeBufferPointer(rebasing: value), as: UTF8.self)
                    }
                }
                return nil
            }
        }
    }

    private static func upToNUL(
        in rest: inout Slice<UnsafeBufferPointer<UInt8>>
    ) -> Slice<UnsafeBufferPointer<UInt8>>? {
        guard let end = rest.firstIndex(of: 0) else { return nil }
        defer { rest = rest[(end + 1)...] }
        return rest[..<end]
    }
}
