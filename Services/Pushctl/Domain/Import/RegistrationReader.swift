import PushProtocol

/// The values of one registration in a file; absent ones are missing, never empty.
typealias DeviceFields = [DeviceField: String]

/// Reads the registrations of a file, record by record.
protocol RegistrationReader: Sendable {
    /// The registrations of a record: a line, or a JSON object.
    ///
    /// - Returns: one registration, or one for each token of a list.
    func registrations(in record: [UInt8]) throws(LineError) -> [DeviceFields]
}

enum ImportFormat: String, CaseIterable, Sendable {
    /// The formats of `devices export`.
    case ndjson
    case csv
    case oneSignal = "onesignal"
    case firebaseCSV = "firebase-csv"
    case gorush
    case aeroGear = "aerogear"

    static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }

    /// How a file separates its records.
    var framing: Framing {
        switch self {
        case .ndjson: .lines
        case .csv, .oneSignal, .firebaseCSV: .table
        case .gorush, .aeroGear: .objects
        }
    }

    enum Framing: Sendable {
        case lines
        /// Lines; the first one names the columns.
        case table
        /// JSON objects: in an array, or one after the other.
        case objects
    }
}

/// Values that an export lacks, and the names that it uses.
struct ImportOptions: Hashable, Sendable {
    var environment: ProviderEnvironment?
    var platform: DevicePlatform?
    /// The names of the columns of a CSV file.
    var columns: [DeviceField: String] = [:]
    /// The path to the user in a notification of gorush, such as `data.user_id`.
    var userMember: String?

    init() {}

    /// Reads the options of the command.
    ///
    /// - Parameter columns: `token=fcm_token,user=uid`: fields with the names of their columns.
    init(environment: String?, platform: String?, columns: String?, userMember: String?) throws(LineError) {
        if let name = environment {
            guard let known = ProviderEnvironment(clientName: name) else {
                throw LineError("--environment is production or development")
            }
            self.environment = known
        }
        if let name = platform {
            guard let known = DevicePlatform(rawValue: name) else { throw LineError("--platform is ios or android") }
            self.platform = known
        }
        for pair in (columns ?? "").split(separator: ",") {
            let words = pair.split(separator: "=", maxSplits: 1).map(String.init)
            guard words.count == 2, let field = DeviceField(rawValue: words[0]) else {
                throw LineError("--columns has the form token=NAME,user=NAME; the fields are \(DeviceField.names)")
            }
            guard self.columns[field] == nil, !self.columns.values.contains(words[1]) else {
                throw LineError("--columns: \(words[0]) or \(words[1]) occurs twice")
            }
            self.columns[field] = words[1]
        }
        self.userMember = userMember
    }

    /// Part of the import's identity, empty without options.
    var mode: String {
        var words: [String] = []
        if let environment { words.append("environment=\(environment.rawValue)") }
        if let platform { words.append("platform=\(platform.rawValue)") }
        words += columns.map { "\($0.rawValue)=\($1)" }.sorted()
        if let userMember { words.append("member=\(userMember)") }
        return words.map { " \($0)" }.joined()
    }

    /// Adds the environment and the platform where the registration has none.
    func completing(_ fields: DeviceFields) -> DeviceFields {
        var fields = fields
        if let environment, fields[.environment] == nil { fields[.environment] = environment.rawValue }
        if let platform, fields[.platform] == nil, fields[.provider] == nil {
            fields[.platform] = platform.rawValue
        }
        return fields
    }
}

extension [UInt8] {
    /// The maximum size of a record, in bytes.
    func requireSize(atMost maximum: Int) throws(LineError) {
        guard count <= maximum else {
            throw LineError("the line has more than \(maximum) bytes, the maximum")
        }
    }

    /// The JSON object that the bytes are.
    func jsonObject() throws(LineError) -> JSONValue {
        guard let value = try? WireCoding.decode(JSONValue.self, from: self), value.object != nil else {
            throw LineError("the line is not a JSON object")
        }
        return value
    }
}
