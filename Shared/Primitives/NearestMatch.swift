/// Suggestions for misspelled names: “Did you mean …?”
package enum NearestMatch {
    /// The number of typing errors that a suggestion may correct.
    package enum Tolerance: Sendable {
        /// At least two: for names of which no two are similar, such as settings.
        case wide
        /// One to three, and none in names of one or two letters: for words of which some are similar.
        case narrow

        fileprivate func limit(for name: String) -> Int? {
            switch self {
            case .wide: max(2, name.count / 4)
            case .narrow: name.count > 2 ? max(1, min(3, name.count / 4)) : nil
            }
        }
    }

    /// Returns the candidate nearest to `name`, if it is close enough.
    package static func of(
        _ name: String, among candidates: some Sequence<String>, _ tolerance: Tolerance = .narrow
    ) -> String? {
        guard let limit = tolerance.limit(for: name) else { return nil }
        return candidates.lazy.map { (distance(name, $0), $0) }.filter { $0.0 <= limit }.min { $0 < $1 }?.1
    }

    /// Returns the number of letters to insert, delete, replace or swap with a neighbour. Case does not count.
    static func distance(_ a: String, _ b: String) -> Int {
        let (a, b) = (Array(a.lowercased()), Array(b.lowercased()))
        var rows = [Array(0...b.count)]
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                let substitution = rows[i][j] + (a[i] == b[j] ? 0 : 1)
                var best = min(rows[i][j + 1] + 1, row[j] + 1, substitution)
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, rows[i - 1][j - 1] + 1) }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[a.count][b.count]
    }
}
