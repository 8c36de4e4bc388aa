import FoundationEssentials
import Postgres
import PushProtocol

/// The table of what providers said against registrations.
struct EvidenceStore: Sendable {
    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// Keeps every finding once, in one statement; what is there already stays as it is.
    func record(_ findings: [Finding]) async throws(PostgresError) {
        let rows = Dictionary(findings.map { (Key($0), $0) }) { first, _ in first }.values.sorted {
            Key($0) < Key($1)
        }
        guard !rows.isEmpty else { return }
        try await database.execute(
            """
            INSERT INTO feedback.evidence
                (notification_id, device_id, app, provider, environment, finding, reason, gone_since, registered_at,
                observed_at)
            SELECT * FROM unnest(
                \(rows.map(\.notification))::uuid[], \(rows.map(\.device))::uuid[], \(rows.map(\.app.rawValue))::text[],
                \(rows.map(\.origin.rawValue))::text[], \(rows.map { $0.environment?.rawValue })::text[],
                \(rows.map(\.verdict.rawValue))::text[], \(rows.map(\.reason))::text[],
                \(rows.map { $0.goneSince?.date })::timestamptz[], \(rows.map { $0.registeredAt?.date })::timestamptz[],
                \(rows.map(\.observedAt.date))::timestamptz[])
            ON CONFLICT (notification_id, device_id) DO NOTHING
            """)
    }

    private struct Key: Hashable, Comparable {
        let text: String

        init(_ finding: Finding) { text = finding.notification.uuidString + finding.device.uuidString }

        static func < (a: Key, b: Key) -> Bool { a.text < b.text }
    }
}
