package import PushProtocol

/// How a rule collects a user's notifications and sends them as one summary.
package struct Digest: Hashable, Sendable {
    /// Separates items of one rule and user into buckets; `nil`: one bucket.
    package var bucket: Template?
    package var close: Close
    /// The number of new items that closes the bucket early.
    package var count: Int?
    package var remains = Remains.never
    /// The values of each item that the summary can use.
    package var keep: [DataTemplate.Member] = []
    /// The member of ``keep`` by which items are sorted; `nil`: order of arrival.
    package var order: String?
    package var say: Rule.MessageTemplate

    package enum Close: Hashable, Sendable {
        /// At this local time, once on a local date of `days`. The user's own digest time takes precedence.
        case at(LocalTime, days: DigestDays)
        /// This long after the first item.
        case after(Duration)
    }

    /// Whether an item stays in the bucket after a digest.
    package enum Remains: String, Hashable, Sendable, CaseIterable {
        /// The item is in one digest only.
        case never
        /// The item is in every digest that has a new item, until an event removes the item or it ends.
        case counted
        /// The item is in every digest, until an event removes the item or it ends.
        case told
    }

    /// The maximum number of items in a summary's `items`; `count` includes all items.
    package static let mostItems = 20
    static let highestCount = 1000
    static let longestWindow = Duration.seconds(7 * 86_400)

    /// The entry that one event adds to a bucket.
    package struct Entry: Codable, Hashable, Sendable {
        /// The name of the bucket, which starts with the rule's name.
        package var bucket: String
        /// The item's values of ``Digest/keep``.
        package var values: JSONValue
    }

    package func entry(rule: String, _ scope: Scope) throws(PlacedProblem) -> Entry {
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

    /// Returns a summary's variables: `count`, `one` (whether the count is 1), `items`, `first`, `last`, `more` and `sum`.
    ///
    /// `more` is the number of items that `items` leaves out; null if none. `sum` has the sum of each value that is a
    /// number, over all items.
    package static func summary(_ values: [JSONValue]) -> JSONValue {
        .object([
            "count": .int(Int64(values.count)), "one": .bool(values.count == 1),
            "items": .array(Array(values.prefix(mostItems))), "first": values.first ?? .null,
            "last": values.last ?? .null,
            "more": values.count > mostItems ? .int(Int64(values.count - mostItems)) : .null,
            "sum": .object(sums(values)),
        ])
    }

    private static func sums(_ values: [JSONValue]) -> [String: JSONValue] {
        var sums: [String: JSONValue] = [:]
        for (name, value) in values.lazy.compactMap(\.object).joined() {
            guard let number = value.number else { continue }
            if case .int(let whole) = value, case .int(let sum) = sums[name] ?? 0,
                case (let total, false) = sum.addingReportingOverflow(whole)
            {
                sums[name] = .int(total)
            } else {
                sums[name] = .double((sums[name]?.number ?? 0) + number)
            }
        }
        return sums
    }

    /// Sorts the items by ``order``. The given order is the order of arrival.
    package func ordered(_ values: [JSONValue]) -> [JSONValue] {
        guard let order else { return values }
        return values.enumerated().sorted { a, b in
            let (left, right) = (a.element[path: order], b.element[path: order])
            if let left = left?.number, let right = right?.number { return (left, a.offset) < (right, b.offset) }
            return (left?.shown ?? "", a.offset) < (right?.shown ?? "", b.offset)
        }.map(\.element)
    }
}
