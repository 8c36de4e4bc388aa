import FoundationEssentials
import Postgres
import PushProtocol
import TokenEncryption

/// Imports registrations with the rules of `RegistrationStore.register`, a batch at a time through a staging table.
/// `ImportStoreTests` compares both.
struct ImportStore: Sendable {
    private let database: PostgresPool
    /// Encrypts tokens.
    private let cipher: TokenCipher
    private let devicesPerUser: Int
    /// Whether each new registration is announced, like one from a device.
    private let announces: Bool

    init(_ database: PostgresPool, cipher: TokenCipher = .none, devicesPerUser: Int, announces: Bool = true) {
        self.database = database
        self.cipher = cipher
        self.devicesPerUser = devicesPerUser
        self.announces = announces
    }

    /// Requires the registry's own token keys, so that tokens are stored as the registry stores them.
    ///
    /// - Parameter areGiven: whether there is a key file.
    func requireKeys(areGiven: Bool) async throws {
        let row = try await database.query("SELECT key, proof FROM registry.token_rewrite").first
        // No row: the registry has never started.
        guard let row, let key = try row.decode(String?.self, at: 0) else { return }
        guard areGiven else {
            throw CommandError(
                "the registry encrypts tokens; give its keys with --token-keys FILE or REGISTRY_TOKEN_KEYS_FILE")
        }
        guard key == cipher.writingKeyID else {
            throw CommandError(
                "the registry encrypts with the key “\(key)”, but the key file starts with “\(cipher.writingKeyID)”; use the registry's file"
            )
        }
        let proof = try row.decode(String?.self, at: 1) ?? ""
        let isSame =
            (try? cipher.open(proof, device: TokenCipher.KeyCheck.device, app: TokenCipher.KeyCheck.app)) != nil
        guard isSame else {
            throw CommandError(
                "the key “\(key)” in the key file differs from the registry's; use the registry's file"
            )
        }
    }

    /// Returns the progress of a file's import, creating it if necessary.
    ///
    /// - Parameter legacy: the fingerprint of an earlier release, whose progress is adopted.
    func begin(_ file: [UInt8], legacyFingerprint legacy: [UInt8]? = nil, name: String) async throws -> ImportState {
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
        guard let row = rows.first else {
            throw CommandError("the import was removed from registry.import; start it again")
        }
        return ImportState(
            startedAt: try row.decode(Date.self, at: 0), line: try row.decode(Int.self, at: 1),
            position: try row.decode(Int.self, at: 2), taken: try row.decode(Int.self, at: 3),
            superseded: try row.decode(Int.self, at: 4), refused: try row.decode(Int.self, at: 5),
            finishedAt: try row.decode(Date?.self, at: 6))
    }

    /// Resets the progress of a file.
    func forget(_ file: [UInt8]) async throws {
        try await database.execute("DELETE FROM registry.import WHERE id = \(file)")
    }

    /// Imports a batch and stores the progress in one transaction.
    ///
    /// - Parameters:
    ///   - state: the progress before the batch.
    ///   - end: the line and byte position after the batch.
    /// - Returns: the new progress.
    func take(
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

    /// Marks the file as imported.
    func finish(_ file: [UInt8], _ state: ImportState) async throws {
        try await database.transaction { transaction in
            var next = state
            next.finishedAt = Date()
            try await saveProgress(next, of: file, after: state, in: transaction)
        }
    }

    private func saveProgress(
        _ next: ImportState, of file: [UInt8], after state: ImportState, in transaction: PostgresTransaction
    ) async throws {
        let noted = try await transaction.execute(
            """
            UPDATE registry.import
            SET line = \(next.line), position = \(next.position), taken = \(next.taken), void = \(next.superseded),
                refused = \(next.refused), finished_at = \(next.finishedAt)
            WHERE id = \(file) AND line = \(state.line) AND finished_at IS NULL
            """)
        guard noted == 1 else {
            throw CommandError(
                "another process is importing the same file; this one stopped without repeating anything")
        }
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
        try await transaction.execute(Self.advisoryLocks)
        var taken = 0
        for wave in 0..<batch.waves {
            taken += try await transaction.execute(Self.upsert(wave))
            try await transaction.execute(Self.replacement(wave))
            try await transaction.execute(Self.eviction(wave, beyond: devicesPerUser))
        }
        return taken
    }

    private func rows(_ entries: [ImportBatch.ImportLine], startedAt: Date) -> CopyRows {
        var rows = CopyRows()
        for entry in entries {
            let device = entry.device
            // Of lines without a time, the later one wins. A line takes longer than a microsecond, so no time is in the
            // future.
            let time = device.registeredAt ?? startedAt + Double(entry.line) / 1_000_000
            let token = cipher.seal(
                device.token, device: device.device, app: device.app, provider: device.provider,
                environment: device.environment)
            rows.append(
                Int32(entry.wave), device.device, device.app.rawValue, device.user.rawValue, device.provider.rawValue,
                device.environment.rawValue, token.stored, token.moved, device.kind.rawValue,
                device.installation?.rawValue,
                device.scope, device.topic, device.platform?.rawValue, device.locale, device.timeZone,
                device.appVersion, time)
        }
        return rows
    }
}
