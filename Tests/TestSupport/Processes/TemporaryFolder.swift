internal import Foundation

/// A folder that is deleted with its owner.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init() throws {
        path = NSTemporaryDirectory() + "heliograph-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file and returns its path.
    @discardableResult
    package func write(_ name: String, _ text: String) throws -> String {
        let file = "\(path)/\(name)"
        try Data(text.utf8).write(to: URL(filePath: file))
        return file
    }

    /// Deletes a file.
    package func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: "\(path)/\(name)") }
}
