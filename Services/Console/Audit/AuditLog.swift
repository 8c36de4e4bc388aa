import Foundation
import PushProtocol
import ServiceKit

/// The audit log: one JSON document a line, in a file that the console appends to and never changes.
///
/// Several processes may append to one file: each line is one `write` with `O_APPEND`, which Linux does not interleave on
/// local file systems.
actor AuditLog {
    /// The end of the file that the screen reads, in bytes.
    private static let readSize: UInt64 = 1 << 20

    private let path: String
    private let file: FileHandle

    init(path: String) throws(ConfigurationError) {
        let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw ConfigurationError("CONSOLE_AUDIT_FILE: “\(path)” cannot be opened for writing; create its folder")
        }
        self.path = path
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Appends an entry. An action must not happen without its entry, so the caller ends with the error.
    func append(_ entry: AuditEntry) throws {
        try file.write(contentsOf: Data(try WireCoding.encode(entry.json) + [UInt8(ascii: "\n")]))
    }

    /// The last entries, latest first. Damaged lines are left out.
    func last(_ limit: Int) throws -> [AuditEntry] {
        let reader = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? reader.close() }
        let size = try reader.seekToEnd()
        try reader.seek(toOffset: size > Self.readSize ? size - Self.readSize : 0)
        let lines = try reader.readToEnd()?.split(separator: UInt8(ascii: "\n")) ?? []
        return lines.reversed().lazy.compactMap { line in
            (try? WireCoding.decode(JSONValue.self, from: Array(line))).flatMap(AuditEntry.init)
        }.prefix(limit).map { $0 }
    }
}
