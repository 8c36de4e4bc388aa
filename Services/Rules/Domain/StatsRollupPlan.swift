import PushProtocol

/// When an hour of decisions is counted: again and again while answers come, twice more for what people do with them later,
/// and then never again.
enum StatsRollupPlan {
    /// How long an hour counts.
    static let hour = Duration.seconds(3600)
    /// For how long after its end an hour is counted every ``pace``.
    static let freshness = Duration.seconds(3600)
    static let pace = Duration.seconds(600)
    /// How long after its end an hour is counted once more.
    static let laterCounts = [Duration.seconds(86_400), .seconds(3 * 86_400)]
    /// The oldest hours that are counted at all, for when nobody counted for a while.
    static let reach = Duration.seconds(7 * 86_400)
    /// How long what was counted is kept.
    static let retention = Duration.seconds(400 * 86_400)

    /// The hours that are to be counted now, the latest first.
    ///
    /// - Parameter counted: when each hour was counted last.
    static func due(_ counted: [Timestamp: Timestamp], now: Timestamp) -> [Timestamp] {
        var due: [Timestamp] = []
        var hour = Self.hour(of: now)
        while now - hour <= reach {
            if isDue(hour, counted[hour], now: now) { due.append(hour) }
            hour = hour - Self.hour
        }
        return due
    }

    /// The hour in which a moment is.
    static func hour(of moment: Timestamp) -> Timestamp { moment.rounded(downTo: hour) }

    private static func isDue(_ hour: Timestamp, _ counted: Timestamp?, now: Timestamp) -> Bool {
        guard let counted else { return true }
        let end = hour + Self.hour
        if now - counted >= pace, counted < end + freshness { return true }
        return laterCounts.contains { counted < end + $0 && now >= end + $0 }
    }
}
