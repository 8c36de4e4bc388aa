import Testing

@testable import Primitives

struct NearestMatchTests {
    @Test(arguments: [
        ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "abc", 0), ("Abc", "aBC", 0), ("abc", "ac", 1),
        ("ac", "abc", 1), ("abc", "axc", 1), ("abc", "acb", 1), ("kitten", "sitting", 3), ("caf\u{e9}", "cafe", 1),
    ])
    func `the distance counts insertions, deletions, replacements and swaps`(a: String, b: String, distance: Int) {
        #expect(NearestMatch.distance(a, b) == distance)
    }

    @Test(
        arguments: [
            ("titel", "title"), ("tit", nil), ("id", nil), ("time_sensitive", "time-sensitive"), ("nothing", nil),
        ] as [(String, String?)])
    func `the narrow tolerance corrects a quarter of the letters, at most three`(name: String, match: String?) {
        #expect(NearestMatch.of(name, among: ["body", "time-sensitive", "title", "to"]) == match)
    }

    @Test func `the wide tolerance corrects at least two letters, and more in long names`() {
        let names = ["ADMIN_HOST", "ADMIN_PORT"]
        #expect(NearestMatch.of("ADMIN_PROTS", among: names, .wide) == "ADMIN_PORT")
        #expect(NearestMatch.of("abc", among: ["a"], .wide) == "a")
        #expect(NearestMatch.of("HELIOGRAPH_ADMIN_PORT_FILE", among: ["HELIOGRAPH_ADMIN_PORT"], .wide) != nil)
    }

    @Test func `of equally near candidates the first in the alphabet is returned`() {
        #expect(NearestMatch.of("rooms", among: ["roomz", "room", "roomy"]) == "room")
    }
}
