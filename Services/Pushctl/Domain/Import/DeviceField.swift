/// What a line of devices may say: the columns of a CSV file, the members of an NDJSON line. What `devices export` writes,
/// `devices import` reads.
enum DeviceField: String, CaseIterable, Sendable {
    case app
    case user
    case kind
    /// `apns` or `fcm`; not needed where there is a kind.
    case provider
    /// `ios` or `android`, as other systems say it.
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

/// Why a line is not taken; it quotes nothing of the line, which holds a token.
struct LineRefusal: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The two forms of a file of devices.
enum DeviceFormat: String, CaseIterable, Sendable {
    /// One JSON object a line.
    case ndjson
    /// RFC 4180, the first line names the columns; one line a record.
    case csv

    /// What a file's name says it is.
    init?(path: String) {
        switch path.split(separator: ".").last?.lowercased() {
        case "ndjson", "jsonl": self = .ndjson
        case "csv": self = .csv
        default: return nil
        }
    }
}
