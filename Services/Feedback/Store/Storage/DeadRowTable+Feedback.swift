package import ServiceConnections

extension DeadRowTable {
    /// Feedback's tables with dead rows.
    package static let feedback = [
        DeadRowTable(schema: "feedback", table: "evidence", key: ["notification_id", "device_id"])
    ]
}
