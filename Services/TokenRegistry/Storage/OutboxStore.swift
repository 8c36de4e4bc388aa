import FoundationEssentials
import Messaging
import Postgres
import PushProtocol

/// The announcements that were not published yet.
struct OutboxStore: Sendable {
    /// The most announcements that leave at once.
    static let batch = 500
    /// How long a row of a kind that this build does not know waits for a newer process: as long as a revocation counts.
    static let patience = Duration.seconds(7 * 86_400)

    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// The result of publishing the announcements that were lent.
    struct Published: Sendable {
        /// The numbers that the broker has confirmed.
        var numbers: [Int64] = []
        /// The rows that can never be published.
        var dead: [DeadRow] = []
    }

    /// A row that is set aside.
    struct DeadRow: Hashable, Sendable {
        var number: Int64
        var app: String
        /// A ``ReasonCode``.
        var reason: String
        /// For the log: which column or member is at fault.
        var detail: String
    }

    /// The result of a drain.
    struct Drained: Sendable {
        /// How many rows were looked at.
        var lent: Int
        /// How many of them were published or set aside.
        var settled: Int
        var dead: [DeadRow]
    }

    /// Lends the oldest announcements to `publish` and deletes the ones that it returns. One process does this at a time, so
    /// the events of a device leave in order. When it throws, or the connection breaks, all of them stay.
    ///
    /// Isolates every row that cannot be read. Leaves rows of a kind that this build does not know to a newer process.
    ///
    /// - Returns: `nil` when another process is at it.
    func drain(
        publish: @Sendable ([Announcement]) async throws -> Published
    ) async throws -> Drained? {
        try await database.transaction { (transaction) -> Drained? in
            guard try await !transaction.query("SELECT true FROM registry.relay FOR UPDATE SKIP LOCKED").isEmpty else {
                return nil
            }
            let rows = try await transaction.query(Self.oldest)
            var announcements: [Announcement] = []
            var dead: [DeadRow] = []
            for row in rows {
                let number = try row.decode(Int64.self, at: 0)
                do throws(PostgresError) {
                    announcements.append(try Announcement(row))
                } catch {
                    let app = try row.decode(String.self, at: 2)
                    dead.append(
                        DeadRow(number: number, app: app, reason: ReasonCode.rowUnreadable, detail: error.detail))
                }
            }
            var published = Published()
            if !announcements.isEmpty { published = try await publish(announcements) }
            dead += published.dead
            if !dead.isEmpty { try await transaction.execute(Self.burial(of: dead)) }
            if !published.numbers.isEmpty {
                try await transaction.execute("DELETE FROM registry.outbox WHERE id = ANY(\(published.numbers))")
            }
            return Drained(lent: rows.count, settled: published.numbers.count + dead.count, dead: dead)
        }
    }

    /// Sets aside the rows that have waited for a newer process for ``patience``.
    func buryUnknown() async throws -> [DeadRow] {
        let rows = try await database.query(
            """
            UPDATE registry.outbox SET dead_at = clock_timestamp(), dead_reason = \(ReasonCode.rowKindUnknown)
            WHERE dead_at IS NULL AND NOT (\(Self.isKnown)) AND at < clock_timestamp() - \(Self.patience)
            RETURNING id, app
            """)
        var dead: [DeadRow] = []
        for row in rows {
            dead.append(
                DeadRow(
                    number: try row.decode(Int64.self, at: 0), app: try row.decode(String.self, at: 1),
                    reason: ReasonCode.rowKindUnknown, detail: "no newer process took it within \(Self.patience)"))
        }
        return dead
    }

    /// For how long the oldest announcement has been waiting; `nil` when none is.
    func wait() async throws(PostgresError) -> Duration? {
        try await database.query(
            "SELECT clock_timestamp() - at FROM registry.outbox WHERE dead_at IS NULL ORDER BY id LIMIT 1"
        ).first?.decode(Duration.self, at: 0)
    }

    static var oldest: SQL {
        """
        SELECT id, past, app, user_id, reason, at, device_id, provider, environment, kind, installation, active,
            revokes
        FROM registry.outbox WHERE dead_at IS NULL AND \(isKnown) ORDER BY id LIMIT \(batch)
        """
    }

    /// Whether this build knows the words of a row that a newer release may add to.
    private static var isKnown: SQL {
        """
        past = ANY (\(DeviceEvent.Change.allCases.map(\.rawValue))::text[])
            AND (kind IS NULL OR kind = ANY (\(RegistrationKind.allCases.map(\.rawValue))::text[]))
        """
    }

    private static func burial(of dead: [DeadRow]) -> SQL {
        """
        UPDATE registry.outbox o SET dead_at = clock_timestamp(), dead_reason = d.reason
        FROM unnest(\(dead.map(\.number))::bigint[], \(dead.map(\.reason))::text[]) AS d (id, reason)
        WHERE o.id = d.id
        """
    }
}

/// An announcement, and its number in the outbox.
struct Announcement: Hashable, Sendable {
    let number: Int64
    let event: DeviceEvent
}

extension DeviceEvent.Change: PostgresValue {}

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
            change: try row.decode(DeviceEvent.Change.self, at: 1), user: try row.decode(UserID.self, at: 3),
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
            kind: try row.decode(RegistrationKind?.self, at: 9) ?? .defaultKind(for: provider),
            installation: try row.decode(InstallationID?.self, at: 10), active: try row.decode(Bool.self, at: 11))
    }
}
