import PushProtocol

/// Outcomes of the targets of several pushes in one list, and whose each of them is: the place of its push.
struct TargetOutcomes: Sendable {
    private(set) var outcomes: [Outcome] = []
    private(set) var places: [Int] = []
    private var isOrdered = true

    init(room: Int = 0) {
        outcomes.reserveCapacity(room)
        places.reserveCapacity(room)
    }

    var count: Int { outcomes.count }

    mutating func append(_ outcome: consuming Outcome, of place: Int) {
        if let last = places.last, last > place { isOrdered = false }
        outcomes.append(outcome)
        places.append(place)
    }

    /// In the order of their pushes, and those of one push as they are.
    var ordered: TargetOutcomes {
        if isOrdered { return self }
        var ordered = TargetOutcomes(room: count)
        for index in places.indices.sorted(by: { (places[$0], $0) < (places[$1], $1) }) {
            ordered.append(outcomes[index], of: places[index])
        }
        return ordered
    }

    /// Those that the provider took where they were to be sent, and all others.
    var divided: (accepted: TargetOutcomes, others: TargetOutcomes) {
        // Nearly always there are no others.
        if outcomes.allSatisfy(\.isPlainlyAccepted) { return (self, TargetOutcomes()) }
        var (accepted, others) = (TargetOutcomes(room: count), TargetOutcomes())
        for (outcome, place) in zip(outcomes, places) {
            if outcome.isPlainlyAccepted {
                accepted.append(outcome, of: place)
            } else {
                others.append(outcome, of: place)
            }
        }
        return (accepted, others)
    }

    /// Where in the list the longest runs of whole pushes are that have no more than `limit` outcomes each. A push alone
    /// may have more.
    func runs(ofAtMost limit: Int) -> [Range<Int>] {
        var runs: [Range<Int>] = []
        var start = 0
        // Where the outcomes of the push that is looked at begin.
        var push = 0
        for index in places.indices {
            if places[index] != places[push] { push = index }
            if index - start >= limit, push > start {
                runs.append(start..<push)
                start = push
            }
        }
        if start < count { runs.append(start..<count) }
        return runs
    }
}

extension Outcome {
    /// Whether the provider took it where it was to be sent.
    var isPlainlyAccepted: Bool {
        if case .accepted = answer { elsewhere == nil && refusedFID == nil } else { false }
    }
}
