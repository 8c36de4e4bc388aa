package import Postgres
package import TokenEncryption
import FoundationEssentials
import PushProtocol

/// Imports registrations with the statements of ``RegistrationStore``, a batch at a time through a staging table.
package struct ImportStore: Sendable {
    private let database: PostgresPool
    private let cipher: TokenCipher
    private let devicesPerUser: Int
    /// Whether each new registration is announced, like one from a device.
    private let announces: Bool

    package init(_ database: PostgresPool, cipher: TokenCipher = .none, devicesPerUser: Int, announces: Bool = true) {
        self.database = database
        self.cipher = cipher
        self.devicesPerUser = devicesPerUser
        self.announces = announces
    }

    /// Requires the registry's own token keys, so that tokens are stored as the registry stores them.
    ///
    /// - Parameter areGiven: whether there is a key file.
    package func requireKeys(areGiven: Bool) async throws {
        let row = try await database.query("SELECT key, proof FROM registry.token_rewrite").first
        // No row: the registry has never started.
        guard let row, let key = try row.decode(String?.self, at: 0) else { return }
        guard areGiven else { throw ImportError.keysMissing }
        guard key == cipher.writingKeyID else {
            throw ImportError.otherKey(expected: key, given: cipher.writingKeyID)
        }
        let proof = try row.decode(String?.self, at: 1) ?? ""
        let isSame =
            (try? cipher.open(proof, device: TokenCipher.KeyCheck.device, app: TokenCipher.KeyCheck.app)) != nil
        guard isSame else { throw ImportError.differentKey(key) }
    }

    /// Returns the progress of a file's import, creating it if necessary.
    ///
    /// - Parameter legacy: the fingerprint of an earlier release, whose progress is adopted.
    package func begin(_ file: [UInt8], legacyFingerprint legacy: [UInt8]? = nil, name: String) async throws
        -> ImportState
    {
        if let legacy {
            try await database.execute(
                """
                UPDATE registry.import SET id = \(file)
                WHERE id = \(legacy) AND NOT EXISTS (SELECT FROM registry.import WHERE id = \(file))
                """)
        }
        try await database.execute(
            "INSERT INTO registry.import (id, name) VALUES (\(file), \(name)) ON CONFLICT (id) DO NOTHING")
        let rows = try await database.query(
            """
            SELECT started_at, line, position, taken, void, refused, finished_at FROM registry.import WHERE id = \(file)
            """)
        guard let row = rows.first else { throw ImportError.removed }
        var state = ImportState(startedAt: try row.decode(Date.self, at: 0))
        state.line = try row.decode(Int.self, at: 1)
        state.position = try row.decode(Int.self, at: 2)
        state.taken = try row.decode(Int.self, at: 3)
        state.superseded = try row.decode(Int.self, at: 4)
        state.refused = try row.decode(Int.self, at: 5)
        state.finishedAt = try row.decode(Date?.self, at: 6)
        return state
    }

    /// Resets the progress of a file.
    package func forget(_ file: [UInt8]) async throws {
        try await database.execute("DELETE FROM registry.import WHERE id = \(file)")
    }

    /// Imports a batch and stores the progress in one transaction.
    ///
    /// - Parameters:
    ///   - state: the progress before the batch.
    ///   - end: the line and byte position after the batch.
    /// - Returns: the new progress.
    package func take(
        _ batch: ImportBatch, of file: [UInt8], after state: ImportState, end: (line: Int, position: Int)
    ) async throws -> ImportState {
        try await database.transaction { transaction in
            var next = state
            (next.line, next.position) = end
            next.refused += batch.refused.count
            if !batch.entries.isEmpty {
                let taken = try await take(batch, startedAt: state.startedAt, in: transaction)
                next.taken += taken
                next.superseded += batch.entries.count - taken
            }
            try await saveProgress(next, of: file, after: state, in: transaction)
            return next
        }
    }

    package func finish(_ file: [UInt8], _ state: ImportState) async throws {
        try await database.transaction { transaction in
            try await saveProgress(state, of: file, after: state, isFinished: true, in: transaction)
        }
    }

    private func saveProgress(
        _ next: ImportState, of file: [UInt8], after state: ImportState, isFinished: Bool = false,
        in transaction: PostgresTransaction
    ) async throws {
        let noted = try await transaction.execute(
            """
            UPDATE registry.import
            SET line = \(next.line), position = \(next.position), taken = \(next.taken), void = \(next.superseded),
                refused = \(next.refused), finished_at = CASE WHEN \(isFinished) THEN clock_timestamp() END
            WHERE id = \(file) AND line = \(state.line) AND finished_at IS NULL
            """)
        guard noted == 1 else { throw ImportError.concurrent }
    }

    private func take(
        _ batch: ImportBatch, startedAt: Date, in transaction: PostgresTransaction
    ) async throws -> Int {
        if !announces { try await transaction.execute("SET LOCAL heliograph.unannounced = 'on'") }
        // A new connection has no staging table. Its rows are deleted at commit.
        try await transaction.execute(Self.staging)
        var rows: CopyRows? = rows(batch.entries, startedAt: startedAt)
        try await transaction.copy(into: "pg_temp.import_line") {
            defer { rows = nil }
            return rows
        }
        try await transaction.execute(AdvisoryLock.take(Set(batch.entries.flatMap(\.request.lockNames))))
        var taken = 0
        for wave in 0..<batch.waves {
            let lines: SQL = "(SELECT * FROM pg_temp.import_line WHERE wave = \(wave)) AS c"
            taken += try await transaction.execute(RegistrationStore.upsert(from: lines))
            try await transaction.execute(
                RegistrationStore.settle(
                    """
                    (SELECT DISTINCT app, installation FROM \(lines) WHERE installation IS NOT NULL) AS i
                    """))
            try await transaction.execute(
                RegistrationStore.eviction(
                    of: "(SELECT DISTINCT app, user_id FROM \(lines)) AS u", beyond: devicesPerUser))
        }
        return taken
    }

    private static let staging: SQL = """
        CREATE TEMPORARY TABLE IF NOT EXISTS import_line (
            wave int4 NOT NULL, device_id uuid NOT NULL, app text NOT NULL, user_id text NOT NULL, provider text NOT NULL,
            environment text NOT NULL, token text NOT NULL, moved_token text, kind text NOT NULL,
            installation text, scope text, topic text, platform text, locale text, time_zone text, app_version text, at timestamptz NOT NULL,
            expires_at timestamptz
        ) ON COMMIT DELETE ROWS
        """

    private func rows(_ entries: [ImportBatch.ImportLine], startedAt: Date) -> CopyRows {
        var rows = CopyRows()
        for entry in entries {
            let (request, device) = (entry.request, entry.request.device)
            // Of lines without a time, the later one wins. A line takes longer than a microsecond, so no time is in the
            // future.
            let time = entry.registeredAt ?? startedAt + Double(entry.line) / 1_000_000
            let token = cipher.seal(
                request.token, device: device, app: request.app, provider: request.provider,
                environment: request.environment)
            rows.append(
                Int32(entry.wave), device, request.app.rawValue, request.user.rawValue, request.provider.rawValue,
                request.environment.rawValue, token.stored, token.moved, request.kind.rawValue,
                request.installation?.rawValue, request.scope, request.topic, request.platform?.rawValue,
                request.locale, request.timeZone, request.appVersion, time, request.expiresAt?.date)
        }
        return rows
    }
}

/// The reasons for which an import does not run.
package enum ImportError: Error, Hashable {
    /// The registry encrypts tokens.
    case keysMissing
    /// The registry encrypts with another key.
    case otherKey(expected: String, given: String)
    /// The key differs from the registry's key with the same id.
    case differentKey(String)
    /// The import's progress was deleted.
    case removed
    /// Another process imports the same file.
    case concurrent
}
