extension Explanation {
    /// Whether every user is decided, and every push has an outcome, also those after this first page.
    ///
    /// A held notification counts as decided. So does a push to an audience or a broadcast: the log has no outcomes of
    /// those. A user with several devices may get further outcomes: the log does not have their number.
    package var isComplete: Bool {
        fanOuts.isEmpty && (next == nil || totals?.withoutOutcome == 0) && traces.allSatisfy(\.isComplete)
    }

    /// The number of outcomes of all notifications.
    package var outcomeCount: Int { totals?.outcomes ?? traces.reduce(0) { $0 + $1.outcomes.count } }

    /// Whether a notification was pushed to a device, whose user may have further devices.
    package var mayGetOutcomes: Bool {
        next != nil || traces.contains { $0.outcomes.contains { $0.origin != "registry" } }
    }
}

extension Explanation.NotificationTrace {
    /// Whether the log has everything about the notification for now.
    fileprivate var isComplete: Bool {
        guard let last = decisions.last, last.answer.hasPrefix("push") else { return true }
        return !outcomes.isEmpty || Explanation.reasonsWithoutOutcome.contains(last.reason)
    }
}

extension Explanation {
    /// The reasons of pushes to many users, of which the log has no outcomes.
    static let reasonsWithoutOutcome = ["audience", "broadcast", "segment"]
}
