package enum DeviceFormat: String, CaseIterable, Sendable {
    /// One JSON object per line.
    case ndjson
    /// RFC 4180 with column names in the first line and one record per line.
    case csv

    /// The format by file extension.
    package init?(path: String) {
        switch path.split(separator: ".").last?.lowercased() {
        case "ndjson", "jsonl": self = .ndjson
        case "csv": self = .csv
        default: return nil
        }
    }
}
