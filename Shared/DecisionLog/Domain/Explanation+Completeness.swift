extension Explanation {
    /// Whether every user is decided, and every push has an outcome.
    ///
    /// A held notification counts as decided. So does a push to an audience or a broadcast: the log has no outcomes of
    /// those.
    package var isComplete: Bool { fanOuts.isEmpty && next == nil && traces.allSatisfy(\.isComplete) }
}

extension Explanation.NotificationTrace {
    /// Whether the log has everything about the notification for now.
    fileprivate var isComplete: Bool {
        guard let last = decisions.last, last.answer.hasPrefix("push") else { return true }
        return !outcomes.isEmpty || ["audience", "broadcast"].contains(last.reason)
    }
}
