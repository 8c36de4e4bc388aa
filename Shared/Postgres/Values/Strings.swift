extension String: PostgresElement {
    package static var postgresType: PostgresType { .text }

    package func encode(to buffer: inout [UInt8]) -> Bool {
        buffer.append(contentsOf: utf8)
        return true
    }

    /// Decodes every type whose binary form is text: string types, JSON, and user-defined types such as enums and
    /// citext.
    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> String {
        var bytes = try cell.required(for: "text")
        switch cell.oid {
        case PostgresType.text.oid, PostgresOID.varchar, PostgresOID.bpchar, PostgresOID.name, PostgresOID.char,
            PostgresOID.json, PostgresOID.unknown, PostgresOID.firstUserDefined...:
            break
        case PostgresType.jsonb.oid: bytes = bytes.dropFirst()
        default: throw .type(cell, expected: "text")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .form(cell, expected: "text", "that is not UTF-8")
        }
        return text
    }
}

/// A JSON document of type `jsonb`, as text.
package struct JSONB: Hashable, Sendable {
    package let text: String

    /// Creates a document from unvalidated text; the server validates it.
    package init(_ text: String) { self.text = text }

    /// Creates a document from an encoder's output; replaces bytes that are not UTF-8.
    package init(utf8: [UInt8]) { text = String(decoding: utf8, as: UTF8.self) }
}

extension JSONB: PostgresElement {
    package static var postgresType: PostgresType { .jsonb }

    package func encode(to buffer: inout [UInt8]) -> Bool {
        // The format version of `jsonb`.
        buffer.append(1)
        buffer.append(contentsOf: text.utf8)
        return true
    }

    package static func decode(_ cell: PostgresCell) throws(PostgresMismatch) -> JSONB {
        guard cell.oid == PostgresType.jsonb.oid || cell.oid == PostgresOID.json else {
            throw .type(cell, expected: "jsonb")
        }
        return JSONB(try String.decode(cell))
    }
}
