package import Postgres
package import PushProtocol
import FoundationEssentials
import Messaging

/// The outbox: device events that are not published yet.
package struct OutboxStore: Sendable {
    /// Maximum events published at once.
    package static let batch = 500
    /// How long a row of a kind unknown to this build waits for a newer process: as long as a revocation is valid.
    static let patience = Duration.seconds(7 * 86_400)

    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    package struct Published: Sendable {
        /// Rows that the broker has confirmed.
        package var numbers: [Int64]
        /// Rows that can never be published.
        package var dead: [DeadRow]

        package init(numbers: [Int64] = [], dead: [DeadRow] = []) {
            self.numbers = numbers
            self.dead = dead
        }
    }

    /// A row set aside because it cannot be published.
    package struct DeadRow: Hashable, Sendable {
        package var number: Int64
        package var app: String
        /// A ``ReasonCode``.
        package var reason: String
        /// For the log: the faulty column or member.
        package var detail: String

        package init(number: Int64, app: String, reason: String, detail: String) {
            self.number = number
            self.app = app
            self.reason = reason
            self.detail = detail
        }
    }

    package struct Drained: Sendable {
        /// Rows read.
        package var lent: Int
        /// Rows published or set aside.
        package var settled: Int
        package var dead: [DeadRow]
    }

    /// Passes the oldest events to `publish` and deletes the confirmed rows. One process drains at a time, so that each
    /// device's events are published in order. All rows stay if `publish` throws or the connection breaks.
    ///
    /// Sets unreadable rows aside. Keeps rows of an unknown kind for a newer process.
    ///
    /// - Returns: `nil` if another process drains.
    package func drain(
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
            if !dead.isEmpty { try await transaction.execute(Self.settingAside(of: dead)) }
            if !published.numbers.isEmpty {
                try await transaction.execute("DELETE FROM registry.outbox WHERE id = ANY(\(published.numbers))")
            }
            return Drained(lent: rows.count, settled: published.numbers.count + dead.count, dead: dead)
        }
    }

    /// Sets aside rows of an unknown kind that are older than ``patience``.
    package func setAsideUnknown() async throws -> [DeadRow] {
        let rows = try await database.query(
            """
            UPDATE registry.outbox SET dead_at = clock_timestamp(), dead_reason = \(ReasonCode.rowKindUnknown)
            WHERE dead_at IS NULL AND NOT (\(Self.isKnown)) AND at < clock_timestamp() - \(Self.patience)
            RETURNING id, app
            """)
        return try rows.map { row throws(PostgresError) in
            DeadRow(
                number: try row.decode(Int64.self, at: 0), app: try row.decode(String.self, at: 1),
                reason: ReasonCode.rowKindUnknown, detail: "no newer process published it within \(Self.patience)")
        }
    }

    /// The age of the oldest waiting event; `nil` if none waits.
    package func wait() async throws(PostgresError) -> Duration? {
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

    /// Matches rows whose values are known to this build. A newer release may add values.
    private static var isKnown: SQL {
        """
        past = ANY (\(DeviceEvent.Change.allCases.map(\.rawValue))::text[])
            AND (kind IS NULL OR kind = ANY (\(RegistrationKind.allCases.map(\.rawValue))::text[]))
        """
    }

    private static func settingAside(of dead: [DeadRow]) -> SQL {
        """
        UPDATE registry.outbox o SET dead_at = clock_timestamp(), dead_reason = d.reason
        FROM unnest(\(dead.map(\.number))::bigint[], \(dead.map(\.reason))::text[]) AS d (id, reason)
        WHERE o.id = d.id
        """
    }
}

/// A device event with its outbox row number.
package struct Announcement: Hashable, Sendable {
    package let number: Int64
    package let event: DeviceEvent
}

extension DeviceEvent.Change: PostgresValue {}

extension Announcement {
    /// Decodes a row. The message id derives from the row, so a repeat has the same id.
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
