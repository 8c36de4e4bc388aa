import Logging

/// A log message as one line of at most ``limit`` bytes.
struct LogLine {
    enum Format: Hashable, Sendable { case json, text }

    /// `PIPE_BUF` on Linux: the size up to which write(2) to a pipe is atomic.
    static let limit = 4096

    /// RFC 3339, UTC.
    var time: String
    var level: Logger.Level
    var label: String
    var message: String
    /// The service and the instance, in order.
    var identity: [(name: String, value: String)]
    /// Already redacted.
    var metadata: Logger.Metadata
    /// The lines dropped since the last written one.
    var dropped = 0

    /// Returns the line with its newline. Truncates texts, then omits metadata, until the line fits.
    func bytes(_ format: Format) -> [UInt8] {
        for (textLimit, keepsMetadata) in [(Int.max, true), (1024, true), (256, true), (256, false)] {
            let bytes = render(format, textLimit: textLimit, keepsMetadata: keepsMetadata)
            if bytes.count <= Self.limit { return bytes }
        }
        return render(format, textLimit: 64, keepsMetadata: false)
    }

    private func render(_ format: Format, textLimit: Int, keepsMetadata: Bool) -> [UInt8] {
        switch format {
        case .json: json(textLimit, keepsMetadata)
        case .text: text(textLimit, keepsMetadata)
        }
    }

    private func json(_ textLimit: Int, _ keepsMetadata: Bool) -> [UInt8] {
        var writer = LogWriter(textLimit: textLimit)
        writer.raw("{")
        var reserved: Set<String> = ["time", "level", "message", "logger"]
        writer.member("time", time)
        writer.member("level", level.rawValue)
        writer.member("message", message)
        writer.member("logger", label)
        for (name, value) in identity {
            reserved.insert(name)
            writer.member(name, value)
        }
        if keepsMetadata {
            for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
                writer.member(reserved.contains(key) ? "meta.\(key)" : key, value)
            }
        }
        if textLimit != .max { writer.member("truncated", number: 1) }
        if dropped > 0 { writer.member("dropped", number: dropped) }
        writer.raw("}\n")
        return writer.bytes
    }

    private func text(_ textLimit: Int, _ keepsMetadata: Bool) -> [UInt8] {
        var writer = LogWriter(textLimit: textLimit)
        let level = level.rawValue.uppercased()
        writer.raw("\(time) \(level)\(String(repeating: " ", count: max(0, 8 - level.count))) \(label): ")
        writer.plain(message)
        if keepsMetadata {
            for (key, value) in metadata.sorted(by: { $0.key < $1.key }) {
                writer.raw(" \(key)=")
                writer.word(value.description)
            }
        }
        if textLimit != .max { writer.raw(" …") }
        if dropped > 0 { writer.raw(" dropped=\(dropped)") }
        writer.raw("\n")
        return writer.bytes
    }
}
