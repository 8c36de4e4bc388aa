import PushProtocol

/// The intervals that the census counts, by the time of decision.
enum CensusPlan {
    static let interval = Duration.seconds(10)
    /// The time after an interval's end until its transactions have usually ended.
    static let delay = Duration.seconds(5)
    static let window = Duration.seconds(3600)
    /// How long a missing notification counts.
    static let gapWindow = Duration.seconds(86_400)
    /// When an interval is counted again after its end, for late transactions. Then only open ones are.
    static let recount = Duration.seconds(60)
    /// The most intervals that one round counts for the first time, and again.
    static let mostNew = 60
    static let mostAgain = 20
    /// The most open notifications of an interval that are placed by the stages' reports. The others are on the way.
    static let mostItems = 2000

    /// The starts of the intervals to count for the first time.
    ///
    /// - Parameter last: the start of the last counted interval; `nil` if there is none.
    static func new(after last: Timestamp?, now: Timestamp) -> [Timestamp] {
        let end = now - delay - interval
        var start = max(last.map { $0 + interval } ?? end, now - window).rounded(downTo: interval)
        if let last, start <= last { start = last + interval }
        var starts: [Timestamp] = []
        while start <= end, starts.count < mostNew {
            starts.append(start)
            start = start + interval
        }
        return starts
    }

    /// When an interval is counted again.
    ///
    /// - Parameter elapsed: how long it took, which limits the load of an interval with many open notifications.
    static func due(_ start: Timestamp, isOpen: Bool, elapsed: Duration, now: Timestamp) -> Timestamp {
        if isOpen { return now + min(max(.zero, elapsed * 10), .seconds(60)) }
        let again = start + interval + recount
        // Later than its deletion.
        return now < again ? again : now + window
    }
}
