import Foundation
import Testing

/// Checks the links in Markdown files. ``ArchitecturePageTests`` checks the names in links to Swift files.
@Suite struct LinkTests {
    @Test func `every Markdown link leads to a file and a heading`() throws {
        var links = 0
        for file in try Self.documents() {
            let folder = Sources.root.appending(path: file).deletingLastPathComponent()
            for match in try Sources.text(of: file).matches(of: /\]\(([^)\s#]*)(?:#([^)\s]*))?\)/) {
                let (path, anchor) = (String(match.1), match.2.map(String.init))
                guard !path.contains("://") else { continue }
                links += 1
                let target = path.isEmpty ? Sources.root.appending(path: file) : folder.appending(path: path)
                #expect(FileManager.default.fileExists(atPath: target.path), "\(file): \(path)")
                guard let anchor, !path.hasSuffix(".swift"),
                    let text = try? String(contentsOf: target, encoding: .utf8)
                else { continue }
                #expect(Self.anchors(text).contains(anchor), "\(file): \(path)#\(anchor)")
            }
        }
        #expect(links > 20)
    }

    /// The Markdown files of the repository.
    static func documents() throws -> [String] {
        var documents = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
        for folder in ["Services", "Shared", "Tests", "deploy"] {
            let base = Sources.root.appending(path: folder)
            let enumerator = FileManager.default.enumerator(at: base, includingPropertiesForKeys: nil)
            while let url = enumerator?.nextObject() as? URL {
                if url.pathExtension == "md" {
                    documents.append(String(url.path.dropFirst(Sources.root.path.count + 1)))
                }
            }
        }
        return documents
    }

    /// The anchors that code hosts generate for headings: lowercase, without punctuation, with hyphens for spaces.
    /// Anchors in HTML (`<a id="d0012">`) count too.
    private static func anchors(_ text: String) -> Set<String> {
        let written = text.matches(of: /<a id="([^"]+)">/).map { String($0.1) }
        let headings = text.split(separator: "\n").filter { $0.hasPrefix("#") }
        return Set(
            written
                + headings.map { heading in
                    let words = heading.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased()
                    return String(words.filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }).replacing(
                        " ", with: "-")
                })
    }
}
