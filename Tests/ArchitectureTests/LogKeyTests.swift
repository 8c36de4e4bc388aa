import Testing

/// Compares the log keys of the sources with the table of `deploy/operations/logs.md`.
@Suite struct LogKeyTests {
    @Test func `the page has each shared log key, and no other`() throws {
        let files = ArchitectureTests.sourceFolders.flatMap(Sources.files).filter { $0.hasSuffix("/LogKey.swift") }
        #expect(files.count == 2)
        var keys: Set<String> = []
        for file in files {
            for match in try Sources.text(of: file).matches(of: /static let \w+ = "([^"]+)"/) {
                keys.insert(String(match.1))
            }
        }
        #expect(try Self.documented() == keys)
    }

    /// The keys in the first column of the page's last table.
    private static func documented() throws -> Set<String> {
        let page = try Sources.text(of: "deploy/operations/logs.md")
        let section = page.split(separator: "\n## Keys\n").last ?? ""
        let cells = section.split(separator: "\n").filter { $0.hasPrefix("| `") }.compactMap {
            $0.split(separator: "|").first
        }
        return Set(cells.flatMap { $0.matches(of: /`([^`]+)`/).map { String($0.1) } })
    }
}
