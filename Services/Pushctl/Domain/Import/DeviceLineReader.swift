import PushProtocol

/// Parses the fields of a line.
enum DeviceLineReader: Hashable, Sendable {
    case ndjson
    /// The columns, in the order of the header.
    case csv([DeviceField])

    /// In bytes: all fields at maximum length, with quotes.
    static let maximumSize = 16 << 10

    /// Reads the header of a CSV file.
    init(header: [UInt8]) throws(LineError) {
        let line = header.starts(with: [0xef, 0xbb, 0xbf]) ? Array(header.dropFirst(3)) : header
        var columns: [DeviceField] = []
        for name in try CSVRecord.fields(of: line) {
            guard let column = DeviceField(rawValue: name) else {
                throw LineError("unknown column in the first line; known are \(DeviceField.names)")
            }
            guard !columns.contains(column) else { throw LineError("the column \(name) occurs twice") }
            columns.append(column)
        }
        self = .csv(columns)
    }

    /// The fields of a line. An absent field, an empty text and `null` are equivalent.
    func fields(of line: [UInt8]) throws(LineError) -> [DeviceField: String] {
        guard line.count <= Self.maximumSize else {
            throw LineError("the line has \(line.count) bytes; at most \(Self.maximumSize) are accepted")
        }
        switch self {
        case .ndjson: return try Self.members(of: line)
        case .csv(let columns):
            let values = try CSVRecord.fields(of: line)
            guard values.count == columns.count else {
                throw LineError("the line has \(values.count) fields, the first line has \(columns.count)")
            }
            var fields: [DeviceField: String] = [:]
            for (column, value) in zip(columns, values) where !value.isEmpty { fields[column] = value }
            return fields
        }
    }

    private static func members(of line: [UInt8]) throws(LineError) -> [DeviceField: String] {
        guard let value = try? WireCoding.decode(JSONValue.self, from: line), let members = value.object else {
            throw LineError("the line is not a JSON object")
        }
        var fields: [DeviceField: String] = [:]
        for (name, value) in members {
            guard let field = DeviceField(rawValue: name) else {
                throw LineError("the line has an unknown member; known are \(DeviceField.names)")
            }
            switch value {
            case .null, "": continue
            case .string(let text): fields[field] = text
            // Many systems use numbers as user ids.
            case .int(let number) where field == .user: fields[field] = String(number)
            default: throw LineError("\(name) is not a string")
            }
        }
        return fields
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
