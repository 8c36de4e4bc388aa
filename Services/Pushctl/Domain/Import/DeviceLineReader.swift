import PushProtocol

/// Reads the fields out of a line, whatever its form.
enum DeviceLineReader: Hashable, Sendable {
    case ndjson
    /// The columns, in the order of the first line.
    case csv([DeviceField])

    /// The largest line, in bytes: the longest of all fields, and room for their quotes.
    static let maximumSize = 16 << 10

    /// A reader for a CSV file with this first line.
    init(header: [UInt8]) throws(LineRefusal) {
        let line = header.starts(with: [0xef, 0xbb, 0xbf]) ? Array(header.dropFirst(3)) : header
        var columns: [DeviceField] = []
        for name in try CSVRecord.fields(of: line) {
            guard let column = DeviceField(rawValue: name) else {
                throw LineRefusal("the first line names a column that is not known; known are \(DeviceField.names)")
            }
            guard !columns.contains(column) else { throw LineRefusal("the column \(name) is there twice") }
            columns.append(column)
        }
        self = .csv(columns)
    }

    /// What a line says. Nothing, an empty text and `null` are the same.
    func fields(of line: [UInt8]) throws(LineRefusal) -> [DeviceField: String] {
        guard line.count <= Self.maximumSize else {
            throw LineRefusal("the line has \(line.count) bytes; at most \(Self.maximumSize) are accepted")
        }
        switch self {
        case .ndjson: return try Self.members(of: line)
        case .csv(let columns):
            let values = try CSVRecord.fields(of: line)
            guard values.count == columns.count else {
                throw LineRefusal("it has \(values.count) fields, the first line has \(columns.count)")
            }
            var fields: [DeviceField: String] = [:]
            for (column, value) in zip(columns, values) where !value.isEmpty { fields[column] = value }
            return fields
        }
    }

    private static func members(of line: [UInt8]) throws(LineRefusal) -> [DeviceField: String] {
        guard let value = try? WireCoding.decode(JSONValue.self, from: line), let members = value.object else {
            throw LineRefusal("it is not a JSON object")
        }
        var fields: [DeviceField: String] = [:]
        for (name, value) in members {
            guard let field = DeviceField(rawValue: name) else {
                throw LineRefusal("it has a member that is not known; known are \(DeviceField.names)")
            }
            switch value {
            case .null, "": continue
            case .string(let text): fields[field] = text
            // Users are numbers in many systems.
            case .int(let number) where field == .user: fields[field] = String(number)
            default: throw LineRefusal("\(name) is not a string")
            }
        }
        return fields
    }
}

/// One record of a CSV file (RFC 4180 §2), on a line of its own: nothing that describes a device has a line break in it.
enum CSVRecord {
    static func fields(of line: [UInt8]) throws(LineRefusal) -> [String] {
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
                    throw LineRefusal(
                        "field \(fields.count + 1) has a quote in its middle; quote the field, and double it")
                }
            }
            guard let text = String(validating: field, as: UTF8.self) else {
                throw LineRefusal("field \(fields.count + 1) is not UTF-8")
            }
            fields.append(text)
            switch rest.popFirst() {
            case nil: return fields
            case UInt8(ascii: ","): continue
            default: throw LineRefusal("field \(fields.count) goes on after its closing quote")
            }
        }
    }

    /// Takes a field in quotes off the front.
    private static func quoted(_ rest: inout ArraySlice<UInt8>) throws(LineRefusal) -> [UInt8] {
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
        throw LineRefusal("a quoted field has no end on its line")
    }
}
