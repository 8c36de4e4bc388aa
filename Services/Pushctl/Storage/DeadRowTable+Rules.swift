import Postgres
import ServiceConnections

extension DeadRowTable {
    /// The tables of rules with dead rows. They move to rules once its tables are in a module of their own.
    static let rules: [DeadRowTable] = [
        DeadRowTable(schema: "rules", table: "held", key: ["notification"]),
        // Ends a fan-out early. The row stays without its event, so that a repeated event does not restart it.
        DeadRowTable(
            schema: "rules", table: "crowd", key: ["event", "rule"], app: .event,
            drop: .update(
                """
                body = NULL, circles = NULL, told = '', decided = NULL, due_at = NULL, ended_at = clock_timestamp()
                """)),
        DeadRowTable(
            schema: "rules", table: "digest", key: ["app", "user_id", "bucket"],
            drop: .deleteWithItems(of: "digest_item")),
        DeadRowTable(schema: "rules", table: "digest_item", key: ["app", "user_id", "bucket", "item"]),
        DeadRowTable(schema: "rules", table: "badge", key: ["app", "user_id"]),
        DeadRowTable(schema: "rules", table: "preference_change", key: ["app", "user_id"]),
        DeadRowTable(schema: "rules", table: "clear_command", key: ["app", "user_id"]),
        // Deletes the request. Notifications that it would have revoked are sent.
        DeadRowTable(schema: "rules", table: "revocation", key: ["id"]),
        // Leaves the channel at APNs.
        DeadRowTable(schema: "rules", table: "channel", key: ["id"]),
        DeadRowTable(schema: "rules", table: "report", key: ["notification"]),
        DeadRowTable(schema: "rules", table: "inbox", key: ["notification"]),
        // Resets a user's preferences to the defaults.
        DeadRowTable(
            schema: "rules", table: "person", key: ["app", "user_id"], drop: .update("settings = '{}', logs = '{}'")),
        DeadRowTable(schema: "rules", table: "member", key: ["app", "circle", "user_id"]),
    ]
}
