/// The scripted outcomes of one scope and their progress.
struct OutcomeSequence: Sendable {
    /// Outcomes for every n-th request, and outcomes for a share of the requests.
    private var periodic: [ScriptedOutcome] = []
    private var sampled: [ScriptedOutcome] = []
    /// Outcomes that are played one after the other.
    private var queue: [ScriptedOutcome] = []
    /// The number of requests in the scope since it was scripted.
    private var requests = 0
    let usesChance: Bool

    init(_ outcomes: [ScriptedOutcome]) {
        var hasShare = false
        for outcome in outcomes {
            switch outcome.trigger {
            case .sequence: queue.append(outcome)
            case .every: periodic.append(outcome)
            case .share:
                sampled.append(outcome)
                hasShare = true
            }
        }
        usesChance = hasShare || outcomes.contains { if case .fixed = $0.latency { false } else { true } }
    }

    var isEmpty: Bool { periodic.isEmpty && sampled.isEmpty && queue.isEmpty }
    var count: Int { periodic.count + sampled.count + queue.count }

    /// The outcome of the next request in the scope; `nil` leaves it to the next scope.
    mutating func take(_ random: inout SeededRandom) -> ScriptedOutcome? {
        requests += 1
        if let index = periodic.firstIndex(where: { $0.isDue(at: requests) }) { return Self.play(index, of: &periodic) }
        if !sampled.isEmpty, let index = drawIndex(random.fraction()) { return Self.play(index, of: &sampled) }
        guard let head = queue.first else { return nil }
        if head.skip > 0 {
            queue[0].skip -= 1
            return nil
        }
        return Self.play(0, of: &queue)
    }

    /// The shares are adjacent intervals from 0; a fraction above their sum selects none.
    private func drawIndex(_ fraction: Double) -> Int? {
        var upper = 0.0
        for (index, outcome) in sampled.enumerated() {
            guard case .share(let share) = outcome.trigger else { continue }
            upper += share
            if fraction < upper { return requests > outcome.skip ? index : nil }
        }
        return nil
    }

    private static func play(_ index: Int, of outcomes: inout [ScriptedOutcome]) -> ScriptedOutcome {
        let outcome = outcomes[index]
        if let count = outcome.count {
            outcomes[index].count = count - 1
            if count <= 1 { outcomes.remove(at: index) }
        }
        return outcome
    }
}

extension ScriptedOutcome {
    fileprivate func isDue(at request: Int) -> Bool {
        guard case .every(let period) = trigger, request > skip else { return false }
        return (request - skip) % period == 0
    }
}
