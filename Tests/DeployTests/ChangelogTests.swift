import ServiceKit
import Testing

@Suite struct ChangelogTests {
    private let lines: [String]

    init() throws { lines = try Repository.text("CHANGELOG.md").split(separator: "\n").map(String.init) }

    @Test func `the newest release of the changelog is the version that --version prints`() throws {
        let releases = lines.compactMap { $0.wholeMatch(of: #/## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}/#) }
        let newest = try #require(releases.first)
        #expect(String(newest.1) == Build.version)
    }

    @Test func `every entry of the changelog begins with its component`() {
        let entries = lines.filter { $0.hasPrefix("- ") }
        #expect(!entries.isEmpty)
        for entry in entries {
            #expect(entry.prefixMatch(of: #/- \*\*[a-z-]+(?:,? [a-z-]+)*:\*\* /#) != nil, "\(entry)")
        }
    }

    @Test func `the changelog has the headings of Keep a Changelog only`() {
        let allowed = ["Upgrade steps", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
        for line in lines where line.hasPrefix("### ") {
            #expect(allowed.contains(String(line.dropFirst(4))), "\(line)")
        }
    }
}
