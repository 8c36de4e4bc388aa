import Foundation
import Postgres
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import DecisionLog

/// The rows that `pushctl tail` follows: each committed row once, whatever its own time and the order of commits.
@Suite(.timeLimit(.minutes(2))) struct TailTests {
    private static let app = AppID(rawValue: "portal")!

    private static func store(_ pool: PostgresPool, user: String? = nil, pageSize: Int = 500) -> TailStore {
        TailStore(pool, app: app, user: user, window: .seconds(3600), pageSize: pageSize)
    }

    private static func addEvent(_ pool: PostgresPool, app: String = "portal") async throws -> UUID {
        let key = UUID()
        try await pool.execute(
            """
            INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
            VALUES (\(key), \(app), '/up', \(key.uuidString), 'chat.written', \(key), now())
            """)
        return key
    }

    /// A decision of `age` seconds ago.
    private static func decision(_ event: UUID, user: String, _ notification: UUID = UUID(), age: Int = 0) -> SQL {
        """
        INSERT INTO rules.decision (notification, step, event, rule, user_id, decided_at, answer, reason)
        VALUES (\(notification), 0, \(event), 'chat', \(user), now() - make_interval(secs => \(age)), 'push', 'wanted')
        """
    }

    private static func outcome(_ notification: UUID, _ disposition: String, device: UUID?, age: Int) -> SQL {
        """
        INSERT INTO rules.outcome (notification, device, disposition, origin, reason, at)
        VALUES (\(notification), \(device), \(disposition), 'apns', 'BadTopic',
            now() - make_interval(secs => \(age)))
        """
    }

    /// The new rows, and the next position.
    private static func rows(
        _ store: TailStore, _ position: inout TailStore.Position
    ) async throws -> [TailRow] {
        let found = Mutex<[TailRow]>([])
        position = try await store.rows(after: position) { page in found.withLock { $0 += page } }
        return found.withLock { $0 }
    }

    @Test func `decisions and outcomes are returned once, with their event`() async throws {
        try await TestSchema.rules.withPool { pool in
            let event = try await Self.addEvent(pool)
            try await pool.execute(Self.decision(event, user: "before"))
            let store = Self.store(pool)
            var position = try await store.end()
            #expect(try await Self.rows(store, &position) == [])
            let (notification, device) = (UUID(), UUID())
            try await pool.execute(Self.decision(event, user: "ann", notification))
            // The sender's time of an outcome is older than the last reading.
            try await pool.execute(Self.outcome(notification, "rejected", device: device, age: 900))
            try await pool.execute(Self.outcome(notification, "skipped", device: nil, age: 0))
            let rows = try await Self.rows(store, &position)
            #expect(rows.map(\.user) == ["ann", "ann", "ann"] && Set(rows.map(\.event)) == [event.uuidString])
            #expect(
                rows.map(\.kind) == [
                    .decision(step: 0, answer: "push", until: nil),
                    .outcome(origin: "apns", device: device, disposition: "rejected"),
                    .outcome(origin: "apns", device: nil, disposition: "skipped"),
                ])
            #expect(rows[0].json["kind"] == "decision" && rows[0].json["answer"] == "push")
            #expect(rows[1].json["reason"] == "BadTopic" && rows[2].json["device"] == .null)
            #expect(try await Self.rows(store, &position) == [])
        }
    }

    @Test func `a row is returned after its commit, although later rows were committed before`() async throws {
        try await TestSchema.rules.withPool { pool in
            let event = try await Self.addEvent(pool)
            let store = Self.store(pool)
            let position = Mutex(try await store.end())
            @Sendable func read() async throws -> [String] {
                var next = position.withLock { $0 }
                let users = try await Self.rows(store, &next).map(\.user)
                position.withLock { $0 = next }
                return users
            }
            try await pool.transaction { transaction in
                try await transaction.execute(Self.decision(event, user: "slow", age: 60))
                // A savepoint has a transaction id of its own.
                try await transaction.execute("SAVEPOINT inner_part")
                try await transaction.execute(Self.decision(event, user: "slow-too", age: 60))
                try await transaction.execute("RELEASE SAVEPOINT inner_part")
                try await pool.execute(Self.decision(event, user: "fast"))
                #expect(try await read() == ["fast"])
                #expect(try await read() == [])
            }
            #expect(try await read() == ["slow", "slow-too"])
            #expect(try await read() == [])
        }
    }

    @Test func `pages lose no row and repeat none`() async throws {
        try await TestSchema.rules.withPool { pool in
            let event = try await Self.addEvent(pool)
            let store = Self.store(pool, pageSize: 7)
            var position = try await store.end()
            var users: [String] = []
            for batch in 0..<5 {
                try await pool.transaction { transaction in
                    for number in 0..<20 {
                        try await transaction.execute(Self.decision(event, user: "u-\(batch)-\(number)"))
                    }
                }
                if batch % 2 == 0 { users += try await Self.rows(store, &position).map(\.user) }
            }
            #expect(users.count == 100 && Set(users).count == 100)
        }
    }

    @Test func `other apps, other users and rows older than the window are left out`() async throws {
        try await TestSchema.rules.withPool { pool in
            let (event, foreign) = (try await Self.addEvent(pool), try await Self.addEvent(pool, app: "other"))
            let (everyone, ann) = (Self.store(pool), Self.store(pool, user: "ann"))
            var (first, second) = (try await everyone.end(), try await ann.end())
            try await pool.execute(Self.decision(foreign, user: "ann"))
            try await pool.execute(Self.decision(event, user: "ann"))
            try await pool.execute(Self.decision(event, user: "bob"))
            try await pool.execute(Self.decision(event, user: "ann", age: 4000))
            #expect(try await Self.rows(everyone, &first).map(\.user) == ["ann", "bob"])
            #expect(try await Self.rows(ann, &second).map(\.user) == ["ann"])
        }
    }
}
