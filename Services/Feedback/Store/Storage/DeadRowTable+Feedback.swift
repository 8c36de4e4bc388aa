package import ServiceConnections

extension DeadRowTable {
    package static let feedback = [
        DeadRowTable(schema: "feedback", table: "evidence", key: ["notification_id", "device_id"])
    ]
}
