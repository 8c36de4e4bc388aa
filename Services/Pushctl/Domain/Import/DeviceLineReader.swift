import PushProtocol

/// Parses the lines of the project's own formats.
enum DeviceLineReader: RegistrationReader, Hashable {
    case ndjson
    case csv(CSVTable<DeviceField>)

    /// In bytes: all fields at maximum length, with quotes.
    static let maximumSize = 16 << 10

    /// Reads the header of a CSV file.
    ///
    /// - Parameter columns: the names of the file's columns; other columns are ignored. Empty: the names of the fields.
    init(header: [UInt8], columns: [DeviceField: String] = [:]) throws(LineError) {
        self = .csv(
            try CSVTable(header: header, renamed: columns) { (name) throws(LineError) in
                guard let column = DeviceField(rawValue: name) else {
                    throw LineError("unknown column in the first line; known are \(DeviceField.names)")
                }
                return column
            })
    }

    func registrations(in record: [UInt8]) throws(LineError) -> [DeviceFields] { [try fields(of: record)] }

    /// The fields of a line. An absent field, an empty text and `null` are equivalent.
    func fields(of line: [UInt8]) throws(LineError) -> DeviceFields {
        guard line.count <= Self.maximumSize else {
            throw LineError("the line has \(line.count) bytes; at most \(Self.maximumSize) are accepted")
        }
        switch self {
        case .ndjson: return try Self.members(of: line)
        case .csv(let table): return try table.values(of: line)
        }
    }

    private static func members(of line: [UInt8]) throws(LineError) -> DeviceFields {
        var fields: DeviceFields = [:]
        for (name, value) in try line.jsonObject().object ?? [:] {
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
