/// The columns of a CSV file and the members of an NDJSON line, for `devices import` and `devices export`.
enum DeviceField: String, CaseIterable, Sendable {
    case app
    case user
    case kind
    /// `apns` or `fcm`; optional with a kind.
    case provider
    /// `ios` or `android`, as used by other systems.
    case platform
    case environment
    case token
    case installation
    case scope
    case topic
    case locale
    case timeZone = "time_zone"
    case appVersion = "app_version"
    /// RFC 3339.
    case registeredAt = "registered_at"

    static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}

/// The reason for refusing a line. It quotes nothing, because lines contain tokens.
struct LineError: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The formats of a device file.
enum DeviceFormat: String, CaseIterable, Sendable {
    /// One JSON object per line.
    case ndjson
    /// RFC 4180 with column names in the first line and one record per line.
    case csv

    /// The format by file extension.
    init?(path: String) {
        switch path.split(separator: ".").last?.lowercased() {
        case "ndjson", "jsonl": self = .ndjson
        case "csv": self = .csv
        default: return nil
        }
    }
}
