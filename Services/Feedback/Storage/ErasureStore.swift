import FoundationEssentials
import Postgres
import PushProtocol

/// Registrations that were erased, and what was said about them.
struct ErasureStore: Sendable {
    private let database: PostgresPool

    init(_ database: PostgresPool) { self.database = database }

    /// A registration that was erased: every one of the device up to `revokes`.
    struct Erasure: Hashable, Sendable {
        var device: UUID
        var revokes: Timestamp
        var at: Timestamp
    }

    /// Deletes all evidence about these registrations, whatever was decided about it, and remembers them, so that none is
    /// kept that comes later. Doing it again does nothing.
    ///
    /// - Returns: how many pieces of evidence there were.
    @discardableResult
    func erase(_ erasures: [Erasure]) async throws -> Int {
        guard !erasures.isEmpty else { return 0 }
        return try await database.transaction { transaction in
            // Evidence that is being kept is there first, or is not kept.
            try await transaction.execute(Self.alone)
            try await transaction.execute(Self.remembrance(of: erasures))
            return try await transaction.execute(Self.deletion(erasures))
        }
    }

    private static func remembrance(of erasures: [Erasure]) -> SQL {
        """
        INSERT INTO feedback.erasure AS e (device_id, revokes, erased_at)
        SELECT device_id, max(revokes), max(erased_at) FROM \(table(erasures)) GROUP BY device_id ORDER BY device_id
        ON CONFLICT (device_id) DO UPDATE SET revokes = greatest(e.revokes, excluded.revokes),
            erased_at = greatest(e.erased_at, excluded.erased_at), noted_at = excluded.noted_at
        """
    }

    static func deletion(_ erasures: [Erasure]) -> SQL {
        """
        DELETE FROM feedback.evidence USING \(table(erasures))
        WHERE evidence.device_id = gone.device_id
            AND coalesce(evidence.registered_at <= gone.revokes, evidence.observed_at <= gone.erased_at)
        """
    }

    private static func table(_ erasures: [Erasure]) -> SQL {
        """
        unnest(
            \(erasures.map(\.device))::uuid[], \(erasures.map(\.revokes.date))::timestamptz[],
            \(erasures.map(\.at.date))::timestamptz[]
        ) AS gone (device_id, revokes, erased_at)
        """
    }

    /// Until the transaction ends, and in a statement of its own, so that the next one sees what the other has done:
    /// keeping evidence beside others who do, and erasing alone.
    static let beside: SQL = "SELECT pg_advisory_xact_lock_shared(\(space)::int4, \(evidence)::int4)"
    private static let alone: SQL = "SELECT pg_advisory_xact_lock(\(space)::int4, \(evidence)::int4)"

    /// Of the database's advisory locks those of this service begin with it: “FEIB”.
    private static let space = 0x4645_4942
    /// Keeping evidence, against erasing it.
    private static let evidence = 1
}
