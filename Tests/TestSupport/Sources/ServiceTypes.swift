internal import Foundation

/// The names of the types in a folder's Swift files that conform to `Service`, sorted.
///
/// - Parameter folder: Relative to the package root, such as `Services/Feedback`.
package func serviceTypes(in folder: String) throws -> [String] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: folder)
    var found: [String] = []
    for name in try FileManager.default.subpathsOfDirectory(atPath: root.path) where name.hasSuffix(".swift") {
        let text = try String(contentsOf: root.appending(path: name), encoding: .utf8)
        for match in text.matches(of: /(?:struct|class|actor) (\w+): [^{\n]*\bService\b/) {
            found.append(String(match.1))
        }
    }
    return found.sorted()
}
