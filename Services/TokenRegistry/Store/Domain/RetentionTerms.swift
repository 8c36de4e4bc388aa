/// Retention times of ended data. At least ``least`` days, since late and replayed messages are compared with it.
package struct RetentionTerms: Hashable, Sendable {
    /// Retention of registrations and memberships after their end.
    package var ended: Duration
    /// Retention of campaigns and imports after their end.
    package var records: Duration

    package init(ended: Duration, records: Duration) {
        self.ended = ended
        self.records = records
    }

    package static let usual = RetentionTerms(ended: .seconds(90 * 86_400), records: .seconds(400 * 86_400))
    /// The minimum in days, which the database also enforces (migration 0007). Longer than messages stay in dead-letter
    /// queues (`Topology.deadLetterRetention`).
    package static let least = 30
}
