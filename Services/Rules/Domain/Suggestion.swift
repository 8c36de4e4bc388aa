/// Finds suggestions for misspelled names: “Did you mean …?”
enum Suggestion {
    /// Returns the candidate nearest to `word` if a typing error can explain the difference; `nil` otherwise.
    static func nearest(to word: String, in candidates: some Sequence<String>) -> String? {
        guard word.count > 2 else { return nil }
        let limit = max(1, min(3, word.count / 4))
        return candidates.lazy.map { ($0, distance(word, $0)) }.filter { $0.1 <= limit }
            .min { ($0.1, $0.0) < ($1.1, $1.0) }?.0
    }

    /// Returns the number of letters to insert, delete, replace or swap with a neighbour.
    static func distance(_ a: String, _ b: String) -> Int {
        let a = Array(a.lowercased())
        let b = Array(b.lowercased())
        guard !a.isEmpty, !b.isEmpty else { return max(a.count, b.count) }
        var rows = [Array(0...b.count)]
        for i in 1...a.count {
            var row = [i]
            for j in 1...b.count {
                let substitution = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
                var best = min(rows[i - 1][j] + 1, row[j - 1] + 1, substitution)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] { best = min(best, rows[i - 2][j - 2] + 1) }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[a.count][b.count]
    }
}
