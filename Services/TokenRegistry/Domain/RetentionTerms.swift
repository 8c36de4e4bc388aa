/// Retention times of ended data. At least ``least`` days, since late and replayed messages are compared with it.
struct RetentionTerms: Hashable, Sendable {
    /// Retention of registrations and memberships after their end.
    var ended: Duration
    /// Retention of campaigns and imports after their end.
    var records: Duration

    static let usual = RetentionTerms(ended: .seconds(90 * 86_400), records: .seconds(400 * 86_400))
    /// The minimum in days, which the database also enforces (migration 0007). Longer than messages stay in dead-letter
    /// queues (`Topology.deadLetterRetention`).
    static let least = 30
}
