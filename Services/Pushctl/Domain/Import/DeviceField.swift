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
