import PushProtocol

/// How what is said to a person is gathered, to be said in one.
struct Digest: Hashable, Sendable {
    /// What is gathered together, of one rule and person; without one, all.
    var bucket: Template?
    var close: Close
    /// So many are said at once.
    var count: Int?
    var remains = Remains.never
    /// What the summary can speak of, of each item.
    var keep: [DataTemplate.Member] = []
    /// The member of ``keep`` that items are ordered by; without one, in the order in which they came.
    var order: String?
    var say: Rule.MessageTemplate

    enum Close: Hashable, Sendable {
        /// At this local time, or the one that the person has chosen: once on a local date.
        case daily(LocalTime)
        /// So long after the first.
        case after(Duration)
    }

    /// What becomes of an item that was told.
    enum Remains: String, Hashable, Sendable, CaseIterable {
        /// It is told once.
        case never
        /// It is counted again when there is something new to tell, until an event takes it out or its time is over.
        case counted
        /// It is told again every time, until an event takes it out or its time is over.
        case told
    }

    /// The most items that a summary can speak of by themselves; all are counted.
    static let mostItems = 20
    static let highestCount = 1000
    static let longestWindow = Duration.seconds(7 * 86_400)

    /// What one event adds to it.
    struct Entry: Codable, Hashable, Sendable {
        /// With the rule in it.
        var bucket: String
        /// What of the item the summary can speak of.
        var values: JSONValue
    }

    func entry(rule: String, _ scope: Scope) throws(PlacedProblem) -> Entry {
        var name = rule
        if let bucket {
            do {
                name +=
                    "/"
                    + (try bucket.render(scope).excerpt(Rule.maximumMute).excerpt(bytes: Rule.maximumNameBytes)
                        .replacing("\0", with: ""))
            } catch {
                throw PlacedProblem("policy.digest.bucket", error)
            }
        }
        let values = try DataTemplate.object(keep).render(scope, place: "policy.digest.keep") ?? .object([:])
        return Entry(bucket: name, values: values)
    }

    /// What a summary's variables are looked up in: `count`, `one` (whether it is one), `items`, `first`, `last` and
    /// `more`, how many are left out of `items`, if any.
    static func summary(_ values: [JSONValue]) -> JSONValue {
        .object([
            "count": .int(Int64(values.count)), "one": .bool(values.count == 1),
            "items": .array(Array(values.prefix(mostItems))), "first": values.first ?? .null,
            "last": values.last ?? .null,
            "more": values.count > mostItems ? .int(Int64(values.count - mostItems)) : .null,
        ])
    }

    /// The items in the order in which a summary speaks of them, which came in this one.
    func ordered(_ values: [JSONValue]) -> [JSONValue] {
        guard let order else { return values }
        return values.enumerated().sorted { a, b in
            let (left, right) = (a.element[path: order], b.element[path: order])
            if let left = left?.number, let right = right?.number { return (left, a.offset) < (right, b.offset) }
            return (left?.shown ?? "", a.offset) < (right?.shown ?? "", b.offset)
        }.map(\.element)
    }
}
