/// How long and how many recordings of decisions are kept for an app.
package struct RecordingTerms: Hashable, Sendable {
    package static let longestDays = 90
    package static let defaultLimit = 1_000_000
    /// The highest limit, about 20 GB.
    package static let highestLimit = 10_000_000

    package let days: Int
    /// The maximum number of recordings. The oldest are deleted first.
    package let limit: Int

    package init(days: Int, limit: Int = defaultLimit) {
        self.days = days
        self.limit = limit
    }
}

extension YAMLReader {
    /// Reads `{ days: 14, at-most: 500000 }`.
    mutating func recording(_ entry: LocatedNode) -> RecordingTerms? {
        let members = members(of: entry, known: ["days", "at-most"], required: ["days"])
        guard let days = members["days"].flatMap({ number($0, in: 1...RecordingTerms.longestDays) }) else { return nil }
        guard let atMost = members["at-most"] else { return RecordingTerms(days: days) }
        return number(atMost, in: 1...RecordingTerms.highestLimit).map { RecordingTerms(days: days, limit: $0) }
    }
}
