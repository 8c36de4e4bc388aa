struct CSVTable<Column: Hashable & Sendable>: Hashable, Sendable {
    /// In the order of the header; `nil` for an ignored column.
    private let columns: [Column?]

    /// Reads the first line.
    ///
    /// - Parameter column: the column with a name, or `nil` for a column to ignore.
    init(header: [UInt8], column: (String) throws(LineError) -> Column?) throws(LineError) {
        let line = header.starts(with: [0xef, 0xbb, 0xbf]) ? Array(header.dropFirst(3)) : header
        var columns: [Column?] = []
        for name in try CSVRecord.fields(of: line) {
            let found = try column(name)
            if let found, columns.contains(found) { throw LineError("the column \(name) occurs twice") }
            columns.append(found)
        }
        self.columns = columns
    }

    func has(_ column: Column) -> Bool { columns.contains(column) }

    /// The values of a line, without empty ones.
    func values(of line: [UInt8]) throws(LineError) -> [Column: String] {
        let values = try CSVRecord.fields(of: line)
        guard values.count == columns.count else {
            throw LineError("the line has \(values.count) fields, the first line has \(columns.count)")
        }
        var found: [Column: String] = [:]
        for (column, value) in zip(columns, values) where !value.isEmpty {
            if let column { found[column] = value }
        }
        return found
    }
}

extension CSVTable<DeviceField> {
    /// Reads the first line of a file with names of its own.
    ///
    /// - Parameters:
    ///   - renamed: the names of the file's columns; all others are ignored. Empty: `usual` decides.
    ///   - usual: the column with a name, if no column is renamed.
    init(
        header: [UInt8], renamed: [DeviceField: String], usual: (String) throws(LineError) -> DeviceField?
    ) throws(LineError) {
        guard !renamed.isEmpty else {
            try self.init(header: header, column: usual)
            return
        }
        try self.init(header: header) { name in renamed.first { $0.value == name }?.key }
        for (column, name) in renamed.sorted(by: { $0.key.rawValue < $1.key.rawValue }) where !has(column) {
            throw LineError("the first line has no column “\(name)”, which --columns names for \(column.rawValue)")
        }
    }
}

/// A CSV record (RFC 4180 §2) on one line. Device fields contain no line breaks.
enum CSVRecord {
    static func fields(of line: [UInt8]) throws(LineError) -> [String] {
        var fields: [String] = []
        var rest = line[...]
        while true {
            let field: [UInt8]
            if rest.first == UInt8(ascii: "\"") {
                field = try quoted(&rest)
            } else {
                field = Array(rest.prefix { $0 != UInt8(ascii: ",") })
                rest = rest.dropFirst(field.count)
                guard !field.contains(UInt8(ascii: "\"")) else {
                    throw LineError(
                        "field \(fields.count + 1) contains an unescaped quote; quote the field and double the quote")
                }
            }
            guard let text = String(validating: field, as: UTF8.self) else {
                throw LineError("field \(fields.count + 1) is not UTF-8")
            }
            fields.append(text)
            switch rest.popFirst() {
            case nil: return fields
            case UInt8(ascii: ","): continue
            default: throw LineError("field \(fields.count) has text after its closing quote")
            }
        }
    }

    /// Removes a quoted field from the front.
    private static func quoted(_ rest: inout ArraySlice<UInt8>) throws(LineError) -> [UInt8] {
        var field: [UInt8] = []
        rest.removeFirst()
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\"") else {
                field.append(byte)
                continue
            }
            guard rest.first == byte else { return field }
            rest.removeFirst()
            field.append(byte)
        }
        throw LineError("a quoted field does not end on its line")
    }
}
