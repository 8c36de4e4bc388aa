import Foundation

/// The checkout of the tests.
enum Repository {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().path

    static func text(_ path: String) throws -> String {
        try String(contentsOfFile: "\(root)/\(path)", encoding: .utf8)
    }

    /// Reads a file at any path.
    static func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

    /// The files below a folder, relative to the root.
    static func files(below folder: String, suffix: String) -> [String] {
        let found = FileManager.default.enumerator(atPath: "\(root)/\(folder)")?.compactMap { $0 as? String } ?? []
        return found.filter { $0.hasSuffix(suffix) }.map { "\(folder)/\($0)" }.sorted()
    }

    /// The executables in Package.swift.
    static func products() throws -> Set<String> {
        Set(try text("Package.swift").matches(of: #/\.executable\(name: "([a-z-]+)"/#).map { String($0.1) })
    }

    /// The long-running executables.
    static func services() throws -> Set<String> { try products().subtracting(["pushctl"]) }
}
