/// A table in which a service marks a row that it cannot work on, with the columns `dead_at` and `dead_reason`.
struct DeadRowTable: Hashable, Sendable {
    var schema: String
    var table: String
    /// The columns of its key: what a row is named by.
    var key: [String]
    var app = AppColumn.column
    var drop = Drop.delete

    /// Where a row says to which app it belongs.
    enum AppColumn: Hashable, Sendable {
        /// In its column `app`.
        case column
        /// In the member `app` of the event in its column `body`.
        case event
        /// Nowhere.
        case none
    }

    /// The effect of dropping a row.
    enum Drop: Hashable, Sendable {
        case delete
        /// Deletes a bucket with the items in it.
        case deleteBucket
        /// Ends a crowd where it stands. The row stays, without the event, so that a repeated event does not begin it again.
        case endCrowd
        /// A person has the usual settings, as if they had never chosen any.
        case resetPerson
    }

    /// As it is named on the command line and in metrics, such as `rules.held`.
    var name: String { "\(schema).\(table)" }

    /// Every table with dead rows, of all services.
    static let all: [DeadRowTable] = [
        DeadRowTable(schema: "rules", table: "held", key: ["notification"]),
        DeadRowTable(schema: "rules", table: "crowd", key: ["event", "rule"], app: .event, drop: .endCrowd),
        DeadRowTable(
            schema: "rules", table: "digest", key: ["app", "user_id", "bucket"], drop: .deleteBucket),
        DeadRowTable(schema: "rules", table: "digest_item", key: ["app", "user_id", "bucket", "item"]),
        DeadRowTable(schema: "rules", table: "badge", key: ["app", "user_id"]),
        DeadRowTable(schema: "rules", table: "preference_change", key: ["app", "user_id"]),
        DeadRowTable(schema: "rules", table: "report", key: ["notification"]),
        DeadRowTable(schema: "rules", table: "inbox", key: ["notification"]),
        DeadRowTable(schema: "rules", table: "person", key: ["app", "user_id"], drop: .resetPerson),
        DeadRowTable(schema: "rules", table: "member", key: ["app", "circle", "user_id"]),
        DeadRowTable(schema: "registry", table: "outbox", key: ["id"]),
        DeadRowTable(schema: "feedback", table: "evidence", key: ["notification_id", "device_id"]),
    ]
}
