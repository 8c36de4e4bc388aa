import FoundationEssentials

/// How acceptances that left a sender together travel, and nearly every outcome is one: what all share once, and the rest
/// in columns, in which each device has the same place. The member `accepted` of ``Outcomes``.
struct Acceptances {
    let at: Timestamp
    let devices: [UUID]
    /// The provider's names; absent when none has one, and `null` for those without.
    let ids: [ProviderName?]?
    let notifications: Column<UUID>

    /// `nil` for outcomes that say more than a table holds, or different moments.
    init?(_ outcomes: [Outcome]) {
        guard Self.hold(outcomes) else { return nil }
        at = outcomes[0].at
        devices = outcomes.compactMap(\.device)
        let names = outcomes.map(\.providerName)
        ids = names.contains { $0 != nil } ? names : nil
        notifications = Column(outcomes.map(\.notification))
    }

    var outcomes: [Outcome] {
        devices.indices.map { place in
            Outcome(
                notification: notifications[place], device: devices[place], answer: .accepted(id: ids?[place]), at: at,
                registeredAt: nil)
        }
    }

    /// Whether a table says all that `outcomes` do. By their places: an outcome has many parts to copy.
    static func hold(_ outcomes: [Outcome]) -> Bool {
        guard let at = outcomes.first?.at else { return false }
        return outcomes.indices.allSatisfy { place in
            guard case .accepted = outcomes[place].answer else { return false }
            return outcomes[place].at == at && outcomes[place].device != nil && outcomes[place].registeredAt == nil
                && outcomes[place].elsewhere == nil && outcomes[place].refusedFID == nil && outcomes[place].owner == nil
        }
    }
}

extension Outcome {
    /// What the provider calls it, which only an acceptance has.
    var providerName: ProviderName? { if case .accepted(let id) = answer { id } else { nil } }
}

extension Acceptances: Codable {
    /// Refuses columns that do not belong together.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        at = try container.decode(Timestamp.self, forKey: .at)
        devices = try container.decode([UUID].self, forKey: .devices)
        ids = try container.decodeIfPresent([ProviderName?].self, forKey: .ids)
        notifications = try container.decode(Column<UUID>.self, forKey: .notifications, rows: devices.count)
        guard ids?.count ?? devices.count == devices.count else {
            throw DecodingError.dataCorruptedError(
                forKey: .ids, in: container, debugDescription: "there must be as many as devices, \(devices.count)")
        }
    }

    private enum CodingKeys: String, CodingKey { case at, devices, ids, notifications }
}
