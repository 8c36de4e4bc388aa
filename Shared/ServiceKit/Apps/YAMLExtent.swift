package import Yams

extension Node {
    /// The most nodes that a document may have, each alias counted as often as it is used: far more than any file of ours.
    package static var maximumNodes: Int { 2_000_000 }

    /// Whether a walk over the document ends after so many nodes. An alias is not copied when it is read, but walked over
    /// each time it is used: a few lines can make a walk that does not end in a lifetime.
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
