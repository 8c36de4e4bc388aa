/// What was scripted for one scope, and how far it was played.
struct OutcomeSequence: Sendable {
    /// Those that wait for each n-th request, and those that are drawn.
    private var periodic: [ScriptedOutcome] = []
    private var drawn: [ScriptedOutcome] = []
    /// Those that are played one after the other.
    private var queue: [ScriptedOutcome] = []
    /// How many requests of the scope came since it was scripted.
    private var requests = 0
    let usesChance: Bool

    init(_ outcomes: [ScriptedOutcome]) {
        var hasShare = false
        for outcome in outcomes {
            switch outcome.occasion {
            case .turn: queue.append(outcome)
            case .every: periodic.append(outcome)
            case .share:
                drawn.append(outcome)
                hasShare = true
            }
        }
        usesChance = hasShare || outcomes.contains { if case .fixed = $0.latency { false } else { true } }
    }

    var isEmpty: Bool { periodic.isEmpty && drawn.isEmpty && queue.isEmpty }
    var count: Int { periodic.count + drawn.count + queue.count }

    /// The outcome for the next request of the scope; `nil` leaves it to the next scope.
    mutating func take(_ draws: inout Draws) -> ScriptedOutcome? {
        requests += 1
        if let index = periodic.firstIndex(where: { $0.isDue(at: requests) }) { return Self.play(index, of: &periodic) }
        if !drawn.isEmpty, let index = drawIndex(draws.fraction()) { return Self.play(index, of: &drawn) }
        guard let head = queue.first else { return nil }
        if head.skip > 0 {
            queue[0].skip -= 1
            return nil
        }
        return Self.play(0, of: &queue)
    }

    /// The shares lie side by side from 0 on; what is left up to 1 draws nothing.
    private func drawIndex(_ fraction: Double) -> Int? {
        var upper = 0.0
        for (index, outcome) in drawn.enumerated() {
            guard case .share(let share) = outcome.occasion else { continue }
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
        guard case .every(let period) = occasion, request > skip else { return false }
        return (request - skip) % period == 0
    }
}
