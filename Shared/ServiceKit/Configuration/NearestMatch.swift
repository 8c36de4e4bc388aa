/// Suggestions for misspelled names: “Did you mean …?”
package enum NearestMatch {
    /// Returns the candidate with the smallest edit distance to `name`, if it is close enough.
    package static func of(_ name: String, among candidates: some Sequence<String>) -> String? {
        let limit = max(2, name.count / 4)
        return
            candidates
            .map { (name: $0, distance: distance(Array(name.utf8), Array($0.utf8))) }
            .filter { $0.distance <= limit }
            .min { ($0.distance, $0.name) < ($1.distance, $1.name) }?
            .name
    }

    /// Returns the Levenshtein distance.
    private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        var row = Array(0...b.count)
        for (i, x) in a.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, y) in b.enumerated() {
                let substitution = diagonal + (x == y ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(substitution, row[j] + 1, diagonal + 1)
            }
        }
        return row[b.count]
    }
}
