/// Rows for COPY in its binary format (Postgres manual, COPY, "Binary Format").
///
///     var rows = CopyRows()
///     rows.append(id, name, nickname)
///
/// The values must have exactly the columns' types: the server does not convert them.
package struct CopyRows: Sendable {
    /// Signature, flags, and the length (0) of the header extension.
    static let header: [UInt8] = Array("PGCOPY\n".utf8) + [0xff, 0x0d, 0x0a, 0x00] + [UInt8](repeating: 0, count: 8)
    static let trailer: [UInt8] = [0xff, 0xff]

    private(set) var bytes: [UInt8] = []
    package private(set) var count = 0

    package init() {}

    /// Appends one row. `nil` is NULL.
    package mutating func append<each Value: PostgresValue>(_ values: repeat each Value) {
        let start = bytes.count
        var width: Int16 = 0
        bytes.append(bigEndian: width)
        for value in repeat each values {
            let length = bytes.count
            // -1 is the length of NULL.
            bytes.append(bigEndian: Int32(-1))
            if value.encode(to: &bytes) { bytes.replace(bigEndian: Int32(bytes.count - length - 4), at: length) }
            width += 1
        }
        bytes.replace(bigEndian: width, at: start)
        count += 1
    }
}
