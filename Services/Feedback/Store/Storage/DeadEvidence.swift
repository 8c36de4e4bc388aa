import FoundationEssentials
import Postgres
import PushProtocol

/// Evidence that was marked dead: its row cannot be decoded, or its command cannot be published.
package struct DeadEvidence: Hashable, Sendable {
    package var key: Evidence.Key
    package var app: String
    /// The faulty column or member, without its value.
    package var detail: String

    /// The stored row cannot be decoded.
    package static let unreadable = "row-unreadable"
    /// The broker always rejects the command.
    package static let unpublishable = "row-unpublishable"

    /// Reads the key and app of a row that ``Evidence/init(_:)`` cannot decode.
    init(_ row: PostgresRow, _ error: PostgresError) throws(PostgresError) {
        key = Evidence.Key(
            notification: try row.decode(UUID.self, at: "notification_id"),
            device: try row.decode(UUID.self, at: "device_id"))
        app = try row.decode(String.self, at: "app")
        detail = error.detail
    }

    package init(_ evidence: Evidence, detail: String) {
        key = evidence.key
        app = evidence.route.app.rawValue
        self.detail = detail
    }

    /// Marks rows as dead. Workers skip them.
    static func markingDead(of keys: [Evidence.Key], because reason: String) -> SQL {
        """
        UPDATE feedback.evidence e SET dead_at = clock_timestamp(), dead_reason = \(reason)
        FROM unnest(\(keys.map(\.notification))::uuid[], \(keys.map(\.device))::uuid[])
            AS c (notification_id, device_id)
        WHERE e.notification_id = c.notification_id AND e.device_id = c.device_id
        """
    }
}

extension [PostgresRow] {
    /// Decodes rows of evidence, and separates the ones that cannot be decoded.
    func evidence() throws(PostgresError) -> (readable: [Evidence], dead: [DeadEvidence]) {
        var readable: [Evidence] = []
        var dead: [DeadEvidence] = []
        for row in self {
            do throws(PostgresError) {
                readable.append(try Evidence(row))
            } catch {
                dead.append(try DeadEvidence(row, error))
            }
        }
        return (readable, dead)
    }
}
