/// The value of a `tracestate`, which is passed on unchanged (W3C Trace Context Level 1, §3.3).
enum TraceState {
    /// The maximum length that every system must pass on.
    static let maximumLength = 512

    /// Returns the value, or `nil` if it is empty, too long, or has other characters than printable ASCII.
    static func valid(_ text: String?) -> String? {
        guard let text, !text.isEmpty, text.utf8.count <= maximumLength,
            text.utf8.allSatisfy({ (0x20...0x7e).contains($0) || $0 == 0x09 })
        else { return nil }
        return text
    }
}
