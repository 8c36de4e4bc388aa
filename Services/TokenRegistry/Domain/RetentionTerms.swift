/// For how long is kept what is over. Never less than ``least``: what comes late or is replayed is held against it.
struct RetentionTerms: Hashable, Sendable {
    /// Registrations that ended and memberships that were left, since then.
    var ended: Duration
    /// Campaigns and imports, since they were finished.
    var records: Duration

    static let usual = RetentionTerms(ended: .seconds(90 * 86_400), records: .seconds(400 * 86_400))
    /// In days; the database holds the service to it (migration 0007). Longer than anything that can still be replayed
    /// lies in a dead-letter queue (`Topology.deadLetterRetention`).
    static let least = 30
}
