import Foundation

/// An `import` line of a source file.
struct Import: Hashable {
    let module: String
    /// Relative to the package root, with `/`.
    let file: String
    let line: Int
}

/// The package's files.
enum Sources {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// All Swift files below `folder`, relative to the package root.
    static func files(below folder: String) -> [String] { files(below: folder, extension: "swift") }

    /// All files with an extension below `folder`, relative to the package root.
    static func files(below folder: String, extension: String) -> [String] {
        let base = root.appending(path: folder)
        let enumerator = FileManager.default.enumerator(at: base, includingPropertiesForKeys: nil)
        var files: [String] = []
        while let url = enumerator?.nextObject() as? URL {
            if url.pathExtension == `extension` { files.append(String(url.path.dropFirst(root.path.count + 1))) }
        }
        return files.sorted()
    }

    static func text(of file: String) throws -> String {
        try String(contentsOf: root.appending(path: file), encoding: .utf8)
    }

    static func folders(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path).sorted()
    }

    /// The imports of a file, with any access level, attribute and declaration kind.
    static func imports(of file: String) throws -> [Import] {
        let text = try text(of: file)
        let pattern =
            /^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+)/
        return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { index, line in
            guard let match = try? pattern.firstMatch(in: line) else { return nil }
            return Import(module: String(match.1), file: file, line: index + 1)
        }
    }
}
