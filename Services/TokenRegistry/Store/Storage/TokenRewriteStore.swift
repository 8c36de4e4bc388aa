package import Logging
package import Postgres
import FoundationEssentials
import PushProtocol
import TokenEncryption

/// Walks through the table in small primary-key ranges and rewrites tokens that are not stored as the first line of the
/// key file says. The row `registry.token_rewrite` has the position and lets one process work at a time.
package struct TokenRewriteStore: Sendable {
    /// Maximum registrations a step reads.
    package static let defaultStep = 500
    /// Time between the end of a walk that rewrote nothing and the next walk.
    package static let rest = Duration.seconds(3600)

    package let tokens: TokenKeys
    private let database: PostgresPool
    private let step: Int
    private let logger: Logger

    package init(_ database: PostgresPool, tokens: TokenKeys, step: Int = defaultStep, logger: Logger = .registry) {
        self.logger = logger
        self.database = database
        self.tokens = tokens
        self.step = step
    }

    package enum Progress: Hashable, Sendable {
        /// Another process runs a step.
        case elsewhere
        /// The last walk found nothing to rewrite, and ended less than ``rest`` ago.
        case resting(Counts)
        /// `rewritten` tokens were rewritten; the walk continues.
        case more(rewritten: Int, Counts)
        /// The same, and the walk ended.
        case finished(rewritten: Int, Counts)
    }

    /// Stored tokens by key id after the last complete walk; ``TokenCipher/plain`` counts tokens in clear.
    package struct Counts: Hashable, Sendable {
        package var numbers: [String: Int]
        /// Whether that walk rewrote nothing.
        package var isSettled: Bool

        package init(numbers: [String: Int] = [:], isSettled: Bool = false) {
            self.numbers = numbers
            self.isSettled = isSettled
        }
    }

    /// Processes the next range. Skips a row that fails alone.
    package func advance() async throws -> Progress {
        try await WalkStep.halving(step, in: "registry.registration", logger) { rows, passes in
            try await advance(step: rows, passes: passes)
        }
    }

    private func advance(step: Int, passes: Bool) async throws -> Progress {
        let cipher = tokens.cipher
        return try await database.transaction { transaction in
            guard let row = try await transaction.query(Self.turn(rest: Self.rest)).first else { return .elsewhere }
            var walk = try Walk(row)
            if walk.key != cipher.writingKeyID {
                walk = Walk(key: cipher.writingKeyID)
                let proof = cipher.seal(
                    TokenCipher.KeyCheck.token, device: TokenCipher.KeyCheck.device, app: TokenCipher.KeyCheck.app)
                try await transaction.execute(
                    "UPDATE registry.token_rewrite SET key = \(cipher.writingKeyID), proof = \(proof)")
            } else if walk.isResting {
                return .resting(walk.last)
            }
            let found = try await transaction.query(SweepStore.end(of: step, after: walk.position)).first
            let end = try found?.decode(UUID.self, at: 0)
            let range = (walk.position, end ?? SweepStore.last)
            let rewritten = passes ? 0 : try await rewrite(range, with: cipher, in: transaction)
            walk.rewritten += rewritten
            for row in try await transaction.query(Self.counting(range)) {
                walk.counts[try row.decode(String.self, at: 0), default: 0] += try row.decode(Int.self, at: 1)
            }
            if let end { walk.position = end } else { walk.finish() }
            try await transaction.execute(try walk.note(isFinished: end == nil))
            return end == nil
                ? .finished(rewritten: rewritten, walk.last) : .more(rewritten: rewritten, walk.last)
        }
    }

    private func rewrite(
        _ range: (UUID, UUID), with cipher: TokenCipher, in transaction: PostgresTransaction
    ) async throws -> Int {
        var (devices, former, texts): ([UUID], [String], [String]) = ([], [], [])
        for row in try await transaction.query(Self.others(range, than: cipher.writingKeyID)) {
            let device = try row.decode(UUID.self, at: 0)
            let stored = try row.decode(String.self, at: 2)
            // Keep a token that cannot be decrypted: its key may come back, or its device may register again.
            guard let app = AppID(rawValue: try row.decode(String.self, at: 1)),
                let token = try? tokens.open(stored, device: device, app: app)
            else { continue }
            devices.append(device)
            former.append(stored)
            texts.append(cipher.seal(token, device: device, app: app))
        }
        guard !devices.isEmpty else { return 0 }
        return try await transaction.execute(Self.rewriting(devices, former, texts))
    }

    private static func turn(rest: Duration) -> SQL {
        """
        SELECT key, position, rewritten, counts::text, last::text, settled,
            settled AND finished_at > statement_timestamp() - \(rest)::interval
        FROM registry.token_rewrite FOR UPDATE SKIP LOCKED
        """
    }

    /// Queries tokens that are not stored as new ones are. Skips locked rows until the next walk.
    static func others(_ range: (UUID, UUID), than key: String) -> SQL {
        let isOther: SQL =
            key == TokenCipher.plain
            ? "starts_with(token, \(TokenCipher.prefix()))" : "NOT starts_with(token, \(TokenCipher.prefix(of: key)))"
        return """
            SELECT device_id, app, token FROM registry.registration
            WHERE device_id > \(range.0) AND device_id <= \(range.1) AND token IS NOT NULL AND \(isOther)
            ORDER BY device_id FOR UPDATE SKIP LOCKED
            """
    }

    static func rewriting(_ devices: [UUID], _ former: [String], _ texts: [String]) -> SQL {
        """
        UPDATE registry.registration r SET token = n.token
        FROM unnest(\(devices)::uuid[], \(former)::text[], \(texts)::text[]) AS n (device_id, former, token)
        WHERE r.device_id = n.device_id AND r.token = n.former
        """
    }

    static func counting(_ range: (UUID, UUID)) -> SQL {
        """
        SELECT CASE WHEN starts_with(token, \(TokenCipher.prefix())) THEN split_part(token, ' ', 2)
            ELSE \(TokenCipher.plain) END, count(*)
        FROM registry.registration
        WHERE device_id > \(range.0) AND device_id <= \(range.1) AND token IS NOT NULL GROUP BY 1
        """
    }
}

private struct Walk {
    var key: String?
    var position = SweepStore.first
    var rewritten = 0
    var counts: [String: Int] = [:]
    var last = TokenRewriteStore.Counts()
    var isResting = false

    init(key: String) { self.key = key }

    init(_ row: PostgresRow) throws {
        key = try row.decode(String?.self, at: 0)
        position = try row.decode(UUID.self, at: 1)
        rewritten = try row.decode(Int.self, at: 2)
        counts = try Self.numbers(try row.decode(String.self, at: 3))
        last = .init(
            numbers: try Self.numbers(try row.decode(String.self, at: 4)), isSettled: try row.decode(Bool.self, at: 5))
        isResting = try row.decode(Bool?.self, at: 6) ?? false
    }

    mutating func finish() {
        last = .init(numbers: counts, isSettled: rewritten == 0)
        (position, rewritten, counts) = (SweepStore.first, 0, [:])
    }

    func note(isFinished: Bool) throws -> SQL {
        """
        UPDATE registry.token_rewrite SET position = \(position), rewritten = \(rewritten),
            counts = \(try Self.text(counts))::jsonb, last = \(try Self.text(last.numbers))::jsonb, settled = \(last.isSettled),
            finished_at = CASE WHEN \(isFinished) THEN statement_timestamp() ELSE finished_at END
        """
    }

    private static func numbers(_ text: String) throws -> [String: Int] {
        let members = try WireCoding.decode(JSONValue.self, from: Array(text.utf8)).object ?? [:]
        return members.compactMapValues { $0.int.map(Int.init) }
    }

    private static func text(_ numbers: [String: Int]) throws -> String {
        let members = JSONValue.object(numbers.mapValues { .int(Int64($0)) })
        return try WireCoding.text(members)
    }
}
