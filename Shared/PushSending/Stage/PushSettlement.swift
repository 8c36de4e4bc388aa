import PushProtocol

/// What one attempt at a push came to: outcomes for the targets that are finished, and what is left of it.
struct PushSettlement: Hashable, Sendable {
    var outcomes: [Outcome] = []
    /// The targets to be tried again, by the level that waits long enough for them.
    var later: [RetryLevel: Remainder] = [:]
    /// The targets that were tried until the horizon: a person decides.
    var exhausted = Remainder()

    /// Targets that share a fate, and the reason of the first.
    struct Remainder: Hashable, Sendable {
        var targets: [Push.Target] = []
        var reason = ""

        mutating func add(_ target: Push.Target, _ reason: String) {
            if targets.isEmpty { self.reason = reason }
            targets.append(target)
        }
    }
}
