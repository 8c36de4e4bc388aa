import FoundationEssentials

/// The table form of acceptances: shared values once, the rest in columns with one row a device. The member
/// `accepted` of ``Outcomes``. Nearly every outcome is an acceptance.
struct AcceptedTable {
    let at: Timestamp
    let devices: [UUID]
    /// The provider's message ids: absent when no row has one, `null` in rows without one.
    let ids: [ProviderMessageID?]?
    let notifications: Column<UUID>

    /// Returns `nil` for outcomes that the table cannot represent.
    init?(_ outcomes: [Outcome]) {
        guard Self.canRepresent(outcomes) else { return nil }
        at = outcomes[0].at
        devices = outcomes.compactMap(\.device)
        let names = outcomes.map(\.providerMessageID)
        ids = names.contains { $0 != nil } ? names : nil
        notifications = Column(outcomes.map(\.notification))
    }

    var outcomes: [Outcome] {
        devices.indices.map { position in
            Outcome(
                notification: notifications[position], device: devices[position], answer: .accepted(id: ids?[position]),
                at: at,
                registeredAt: nil)
        }
    }

    /// Whether the table can represent `outcomes`: acceptances with a device, one common time and no further members.
    /// Accesses them by index, because copying an outcome is expensive.
    static func canRepresent(_ outcomes: [Outcome]) -> Bool {
        guard let at = outcomes.first?.at else { return false }
        return outcomes.indices.allSatisfy { position in
            guard case .accepted = outcomes[position].answer else { return false }
            return outcomes[position].at == at && outcomes[position].device != nil
                && outcomes[position].registeredAt == nil
                && outcomes[position].elsewhere == nil && outcomes[position].refusedFID == nil
                && outcomes[position].owner == nil
        }
    }
}

extension Outcome {
    /// The provider's id for an accepted message.
    var providerMessageID: ProviderMessageID? { if case .accepted(let id) = answer { id } else { nil } }
}

extension AcceptedTable: Codable {
    /// Throws when columns differ in length.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        at = try container.decode(Timestamp.self, forKey: .at)
        devices = try container.decode([UUID].self, forKey: .devices)
        ids = try container.decodeIfPresent([ProviderMessageID?].self, forKey: .ids)
        notifications = try container.decode(Column<UUID>.self, forKey: .notifications, rows: devices.count)
        guard ids?.count ?? devices.count == devices.count else {
            throw DecodingError.dataCorruptedError(
                forKey: .ids, in: container, debugDescription: "expected \(devices.count) values, one a device")
        }
    }

    private enum CodingKeys: String, CodingKey { case at, devices, ids, notifications }
}
