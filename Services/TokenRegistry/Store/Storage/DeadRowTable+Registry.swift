package import ServiceConnections

extension DeadRowTable {
    /// The registry's tables with dead rows.
    package static let registry = [DeadRowTable(schema: "registry", table: "outbox", key: ["id"])]
}
