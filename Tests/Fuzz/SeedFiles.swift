import Foundation

/// Files of the repository that are seeds.
enum SeedFiles {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func bytes(of path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: root.appending(path: path))) }

    /// The files of `folder` whose names begin with `prefix`.
    static func all(in folder: String, prefix: String = "") throws -> [[UInt8]] {
        let names = try FileManager.default.contentsOfDirectory(
            atPath: root.appending(path: folder).path(percentEncoded: false))
        return try names.filter { $0.hasPrefix(prefix) }.sorted().map { try bytes(of: "\(folder)/\($0)") }
    }

    /// The golden messages whose names begin with `prefix`.
    static func golden(_ prefix: String) throws -> [[UInt8]] {
        try all(in: "Tests/PushProtocolTests/Golden", prefix: prefix)
    }
}
