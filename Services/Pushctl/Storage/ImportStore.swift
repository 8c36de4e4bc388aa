import FoundationEssentials
import Postgres
import PushProtocol
import TokenEncryption

/// The registry's tables, as an import writes them: the rules of registering (`RegistrationStore.register`), said for a
/// whole batch in a staging table. `ImportStoreTests` holds the two against each other.
struct ImportStore: Sendable {
    private let database: PostgresPool
    /// Encrypts tokens.
    private let cipher: TokenCipher
    private let devicesPerUser: Int
    /// Whether new registrations are told one by one, as those of devices are.
    private let announces: Bool

    init(_ database: PostgresPool, cipher: TokenCipher = .none, devicesPerUser: Int, announces: Bool = true) {
        self.database = database
        self.cipher = cipher
        self.devicesPerUser = devicesPerUser
        self.announces = announces
    }

    /// Refuses to write tokens otherwise than the registry does: in clear, or with a key that it does not have.
    ///
    /// - Parameter areGiven: whether there is a file of keys.
    func requireKeys(areGiven: Bool) async throws {
        let row = try await database.query("SELECT key, proof FROM registry.token_rewrite").first
        // Before the registry first starts there is nothing to compare with.
        guard let row, let key = try row.decode(String?.self, at: 0) else { return }
        guard areGiven else {
            throw Refusal(
                "the registry has keys for tokens; give them with --token-keys FILE or REGISTRY_TOKEN_KEYS_FILE")
        }
        guard key == cipher.writing else {
            throw Refusal(
                "the registry writes tokens with “\(key)”, and the file of keys has “\(cipher.writing)” first; give the registry's"
            )
        }
        let proof = try row.decode(String?.self, at: 1) ?? ""
        let isSame = (try? cipher.open(proof, device: TokenCipher.Proof.device, app: TokenCipher.Proof.app)) != nil
        guard isSame else {
            throw Refusal(
                "the key “\(key)” in the file of keys is another one than the registry's of this id; give the registry's"
            )
        }
    }

    /// Where the import of a file stands; of one that was never begun, at its beginning.
    ///
    /// - Parameter former: what an earlier release knew the file by; an import that it began is this one's.
    func begin(_ file: [UInt8], formerly former: [UInt8]? = nil, name: String) async throws -> ImportState {
        if let former {
            try await database.execute(
                """
                UPDATE registry.import SET id = \(file)
                WHERE id = \(former) AND NOT EXISTS (SELECT FROM registry.import WHERE id = \(file))
                """)
        }
        try await database.execute(
            "INSERT INTO registry.import (id, name) VALUES (\(file), \(name)) ON CONFLICT (id) DO NOTHING")
        let rows = try await database.query(
            """
            SELECT started_at, line, position, taken, void, refused, finished_at FROM registry.import WHERE id = \(file)
            """)
        guard let row = rows.first else { throw Refusal("the import was removed from registry.import meanwhile") }
        return ImportState(
            startedAt: try row.decode(Date.self, at: 0), line: try row.decode(Int.self, at: 1),
            position: try row.decode(Int.self, at: 2), taken: try row.decode(Int.self, at: 3),
            void: try row.decode(Int.self, at: 4), refused: try row.decode(Int.self, at: 5),
            finishedAt: try row.decode(Date?.self, at: 6))
    }

    /// Has a file brought in again from its beginning, as of now.
    func forget(_ file: [UInt8]) async throws {
        try await database.execute("DELETE FROM registry.import WHERE id = \(file)")
    }

    /// Takes a batch and notes how far it goes, in one transaction.
    ///
    /// - Parameters:
    ///   - state: where the import stood before it.
    ///   - end: the lines and bytes of the file that are done with it.
    /// - Returns: where the import stands now.
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
                next.void += batch.entries.count - taken
            }
            try await note(next, of: file, after: state, in: transaction)
            return next
        }
    }

    /// Notes that the whole file is done.
    func finish(_ file: [UInt8], _ state: ImportState) async throws {
        try await database.transaction { transaction in
            var next = state
            next.finishedAt = Date()
            try await note(next, of: file, after: state, in: transaction)
        }
    }

    private func note(
        _ next: ImportState, of file: [UInt8], after state: ImportState, in transaction: PostgresTransaction
    ) async throws {
        let noted = try await transaction.execute(
            """
            UPDATE registry.import
            SET line = \(next.line), position = \(next.position), taken = \(next.taken), void = \(next.void),
                refused = \(next.refused), finished_at = \(next.finishedAt)
            WHERE id = \(file) AND line = \(state.line) AND finished_at IS NULL
            """)
        guard noted == 1 else {
            throw Refusal(
                "another process is importing the same file; this one has stopped, and nothing was done twice")
        }
    }

    private func take(
        _ batch: ImportBatch, startedAt: Date, in transaction: PostgresTransaction
    ) async throws -> Int {
        if !announces { try await transaction.execute("SET LOCAL heliograph.unannounced = 'on'") }
        // A connection that was replaced has none; the rows go with the transaction.
        try await transaction.execute(Self.staging)
        var rows: CopyRows? = rows(batch.entries, startedAt: startedAt)
        try await transaction.copy(into: "pg_temp.import_line") {
            defer { rows = nil }
            return rows
        }
        try await transaction.execute(Self.turns)
        var taken = 0
        for wave in 0..<batch.waves {
            taken += try await transaction.execute(Self.upsert(wave))
            try await transaction.execute(Self.settling(wave))
            try await transaction.execute(Self.eviction(wave, beyond: devicesPerUser))
        }
        return taken
    }

    private func rows(_ entries: [ImportBatch.Entry], startedAt: Date) -> CopyRows {
        var rows = CopyRows()
        for entry in entries {
            let device = entry.device
            // Of lines without a time, the later one is the later registration. A line takes longer than a microsecond,
            // so none is in the future.
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
