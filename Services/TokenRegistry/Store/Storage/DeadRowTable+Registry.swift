package import ServiceConnections

extension DeadRowTable {
    package static let registry = [DeadRowTable(schema: "registry", table: "outbox", key: ["id"])]
}
