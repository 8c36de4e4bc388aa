import PushProtocol

/// Outcomes of the targets of several pushes, each with the index of its push.
struct TargetOutcomes: Sendable {
    private(set) var outcomes: [Outcome] = []
    private(set) var pushIndices: [Int] = []
    private var isOrdered = true

    init(capacity: Int = 0) {
        outcomes.reserveCapacity(capacity)
        pushIndices.reserveCapacity(capacity)
    }

    var count: Int { outcomes.count }

    mutating func append(_ outcome: consuming Outcome, of pushIndex: Int) {
        if let last = pushIndices.last, last > pushIndex { isOrdered = false }
        outcomes.append(outcome)
        pushIndices.append(pushIndex)
    }

    /// The outcomes sorted by push; stable.
    var sortedByPush: TargetOutcomes {
        if isOrdered { return self }
        var sortedByPush = TargetOutcomes(capacity: count)
        for index in pushIndices.indices.sorted(by: { (pushIndices[$0], $0) < (pushIndices[$1], $1) }) {
            sortedByPush.append(outcomes[index], of: pushIndices[index])
        }
        return sortedByPush
    }

    /// The plain acceptances (``Outcome/isAcceptedAsAddressed``), and the other outcomes.
    var partitioned: (accepted: TargetOutcomes, others: TargetOutcomes) {
        // Nearly always all are accepted.
        if outcomes.allSatisfy(\.isAcceptedAsAddressed) { return (self, TargetOutcomes()) }
        var (accepted, others) = (TargetOutcomes(capacity: count), TargetOutcomes())
        for (outcome, pushIndex) in zip(outcomes, pushIndices) {
            if outcome.isAcceptedAsAddressed {
                accepted.append(outcome, of: pushIndex)
            } else {
                others.append(outcome, of: pushIndex)
            }
        }
        return (accepted, others)
    }

    /// Splits the list into chunks of whole pushes with at most `limit` outcomes. A single push may exceed the limit.
    func chunks(ofAtMost limit: Int) -> [Range<Int>] {
        var chunks: [Range<Int>] = []
        var start = 0
        // The first outcome of the current push.
        var push = 0
        for index in pushIndices.indices {
            if pushIndices[index] != pushIndices[push] { push = index }
            if index - start >= limit, push > start {
                chunks.append(start..<push)
                start = push
            }
        }
        if start < count { chunks.append(start..<count) }
        return chunks
    }
}

extension Outcome {
    /// Whether the provider accepted the push in its own environment and for its own address.
    var isAcceptedAsAddressed: Bool {
        if case .accepted = answer { elsewhere == nil && refusedFID == nil } else { false }
    }
}
