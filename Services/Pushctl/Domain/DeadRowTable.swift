/// A table with `dead_at` and `dead_reason`, in which a service marks rows that it cannot process.
struct DeadRowTable: Hashable, Sendable {
    var schema: String
    var table: String
    /// The columns of its primary key.
    var key: [String]
    var app = AppSource.column
    var drop = DropEffect.delete

    /// The source of a row's app.
    enum AppSource: Hashable, Sendable {
        /// The column `app`.
        case column
        /// The member `app` of the event in the column `body`.
        case event
        /// Rows have no app.
        case none
    }

    /// The effect of dropping a row.
    enum DropEffect: Hashable, Sendable {
        case delete
        /// Deletes a digest bucket with its items.
        case deleteBucket
        /// Ends a fan-out early. The row stays without its event, so that a repeated event does not restart it.
        case endFanOut
        /// Resets a user's preferences to the defaults.
        case resetPreferences
    }

    /// The name on the command line and in metrics, such as `rules.held`.
    var name: String { "\(schema).\(table)" }

    /// All tables with dead rows.
    static let all: [DeadRowTable] = [
        DeadRowTable(schema: "rules", table: "held", key: ["notification"]),
        DeadRowTable(schema: "rules", table: "crowd", key: ["event", "rule"], app: .event, drop: .endFanOut),
        DeadRowTable(
            schema: "rules", table: "digest", key: ["app", "user_id", "bucket"], drop: .deleteBucket),
        DeadRowTable(schema: "rules", table: "digest_item", key: ["app", "user_id", "bucket", "item"]),
        DeadRowTable(schema: "rules", table: "badge", key: ["app", "user_id"]),
        DeadRowTable(schema: "rules", table: "preference_change", key: ["app", "user_id"]),
        DeadRowTable(schema: "rules", table: "report", key: ["notification"]),
        DeadRowTable(schema: "rules", table: "inbox", key: ["notification"]),
        DeadRowTable(schema: "rules", table: "person", key: ["app", "user_id"], drop: .resetPreferences),
        DeadRowTable(schema: "rules", table: "member", key: ["app", "circle", "user_id"]),
        DeadRowTable(schema: "registry", table: "outbox", key: ["id"]),
        DeadRowTable(schema: "feedback", table: "evidence", key: ["notification_id", "device_id"]),
    ]
}
