package import Yams

extension Node {
    /// The maximum number of nodes of a document with all aliases expanded.
    package static var maximumNodes: Int { 2_000_000 }

    /// Whether the document has at most `limit` nodes with aliases expanded. Nested aliases can expand a few lines to
    /// billions of nodes (“billion laughs”).
    package func isWalkable(within limit: Int = maximumNodes) -> Bool {
        var budget = limit
        return walk(&budget)
    }

    private func walk(_ budget: inout Int) -> Bool {
        budget -= 1
        guard budget >= 0 else { return false }
        switch self {
        case .scalar, .alias: return true
        case .sequence(let elements):
            for element in elements where !element.walk(&budget) { return false }
            return true
        case .mapping(let members):
            for (key, value) in members where !key.walk(&budget) || !value.walk(&budget) { return false }
            return true
        }
    }
}
