import FoundationEssentials
import Postgres
import PushProtocol

/// The announcements that were not published yet.
struct OutboxStore: Sendable {
    /// The most announcements that leave at once.
    static let batch = 500

    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// Lends the oldest announcements to `publish` and takes those away of which it returns the numbers. One process does
    /// this at a time, so that what happened to a device leaves in order. When it throws, or the connection breaks, they
    /// all stay.
    ///
    /// - Returns: how many were lent and how many left; `nil` when another process is at it.
    func drain(
        publish: @Sendable ([Announcement]) async throws -> [Int64]
    ) async throws -> (lent: Int, left: Int)? {
        try await database.transaction { transaction in
            guard try await !transaction.query("SELECT true FROM registry.relay FOR UPDATE SKIP LOCKED").isEmpty else {
                return nil
            }
            var announcements: [Announcement] = []
            for row in try await transaction.query(Self.oldest) { announcements.append(try Announcement(row)) }
            guard !announcements.isEmpty else { return (0, 0) }
            let published = try await publish(announcements)
            try await transaction.execute("DELETE FROM registry.outbox WHERE id = ANY(\(published))")
            return (announcements.count, published.count)
        }
    }

    /// For how long the oldest announcement has been waiting; `nil` when none is.
    func wait() async throws(PostgresError) -> Duration? {
        try await database.query(
            "SELECT clock_timestamp() - at FROM registry.outbox ORDER BY id LIMIT 1"
        ).first?.decode(Duration.self, at: 0)
    }

    static var oldest: SQL {
        """
        SELECT id, past, app, user_id, reason, at, device_id, provider, environment, kind, installation, active,
            revokes
        FROM registry.outbox ORDER BY id LIMIT \(batch)
        """
    }
}

/// An announcement, and its number in the outbox.
struct Announcement: Hashable, Sendable {
    let number: Int64
    let event: DeviceEvent
}

extension DeviceEvent.Past: PostgresValue {}

extension Announcement {
    /// The same row makes the same message with the same id, however often it is published.
    init(_ row: PostgresRow) throws(PostgresError) {
        number = try row.decode(Int64.self, at: 0)
        let at = Timestamp(try row.decode(Date.self, at: 5))
        let device = try row.decode(UUID?.self, at: 6)
        let id = DerivedID.uuid5(
            DerivedID.namespace,
            ["device-event", String(number), String(at.milliseconds), device?.uuidString.lowercased() ?? ""])
        let word = id.uuidString.lowercased()
        event = DeviceEvent(
            trace: Trace(id: id, correlation: word, causation: word), app: try row.decode(AppID.self, at: 2),
            past: try row.decode(DeviceEvent.Past.self, at: 1), user: try row.decode(UserID.self, at: 3),
            device: try DeviceEvent.Device(device, row), reason: try row.decode(String?.self, at: 4), at: at,
            revokes: try row.decode(Date?.self, at: 12).map(Timestamp.init))
    }
}

extension DeviceEvent.Device {
    fileprivate init?(_ id: UUID?, _ row: PostgresRow) throws(PostgresError) {
        guard let id else { return nil }
        let provider = try row.decode(Provider.self, at: 7)
        self.init(
            id: id, provider: provider, environment: try row.decode(ProviderEnvironment.self, at: 8),
            kind: try row.decode(RegistrationKind?.self, at: 9) ?? .usual(of: provider),
            installation: try row.decode(InstallationID?.self, at: 10), active: try row.decode(Bool.self, at: 11))
    }
}
