package import FoundationEssentials
package import Postgres
package import PushProtocol

/// Deletes the evidence about erased registrations and blocks later evidence about them.
package struct ErasureStore: Sendable {
    private let database: PostgresPool

    package init(_ database: PostgresPool) { self.database = database }

    /// An erasure. It covers all registrations of the device up to `revokes`.
    package struct Erasure: Hashable, Sendable {
        package var device: UUID
        package var revokes: Timestamp
        package var at: Timestamp

        package init(device: UUID, revokes: Timestamp, at: Timestamp) {
            self.device = device
            self.revokes = revokes
            self.at = at
        }
    }

    /// Deletes all evidence about these registrations, with any decision. Records the erasures, so that later evidence
    /// is not stored. Repeating an erasure has no effect.
    ///
    /// - Returns: The number of deleted pieces of evidence.
    @discardableResult
    package func erase(_ erasures: [Erasure]) async throws -> Int {
        guard !erasures.isEmpty else { return 0 }
        return try await database.transaction { transaction in
            // Concurrent inserts of evidence end before the deletion, or see the erasure.
            try await transaction.execute(Self.exclusiveLock)
            try await transaction.execute(Self.erasureUpsert(of: erasures))
            return try await transaction.execute(Self.deletion(erasures))
        }
    }

    private static func erasureUpsert(of erasures: [Erasure]) -> SQL {
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

    /// Advisory locks until the end of the transaction: shared for inserts of evidence, exclusive for erasures.
    ///
    /// Each needs its own statement, so that the next statement sees the other transaction's writes.
    static let sharedLock: SQL = "SELECT pg_advisory_xact_lock_shared(\(space)::int4, \(evidence)::int4)"
    private static let exclusiveLock: SQL = "SELECT pg_advisory_xact_lock(\(space)::int4, \(evidence)::int4)"

    /// The first key of this service's advisory locks: “FEIB”.
    private static let space = 0x4645_4942
    /// The second key: inserts of evidence against erasures.
    private static let evidence = 1
}
