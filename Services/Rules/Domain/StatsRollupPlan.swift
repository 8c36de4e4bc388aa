import PushProtocol

/// Decides when each hour of decisions is counted.
///
/// Counts an hour repeatedly while outcomes arrive, twice more for late user actions, and then never again.
enum StatsRollupPlan {
    static let hour = Duration.seconds(3600)
    /// The time after an hour's end during which it is counted every ``pace``.
    static let repeatPeriod = Duration.seconds(3600)
    static let pace = Duration.seconds(600)
    /// The times after an hour's end at which it is counted once more.
    static let laterCounts = [Duration.seconds(86_400), .seconds(3 * 86_400)]
    /// The maximum age of an hour that is counted. Limits the work after an outage.
    static let maximumAge = Duration.seconds(7 * 86_400)
    /// How long counts are kept.
    static let retention = Duration.seconds(400 * 86_400)

    /// Returns the hours to count now, the latest first.
    ///
    /// - Parameter counted: the last count of each hour.
    static func due(_ counted: [Timestamp: Timestamp], now: Timestamp) -> [Timestamp] {
        var due: [Timestamp] = []
        var hour = Self.hour(of: now)
        while now - hour <= maximumAge {
            if isDue(hour, counted[hour], now: now) { due.append(hour) }
            hour = hour - Self.hour
        }
        return due
    }

    /// Returns the start of the hour that contains a time.
    static func hour(of moment: Timestamp) -> Timestamp { moment.rounded(downTo: hour) }

    private static func isDue(_ hour: Timestamp, _ counted: Timestamp?, now: Timestamp) -> Bool {
        guard let counted else { return true }
        let end = hour + Self.hour
        if now - counted >= pace, counted < end + repeatPeriod { return true }
        return laterCounts.contains { counted < end + $0 && now >= end + $0 }
    }
}
