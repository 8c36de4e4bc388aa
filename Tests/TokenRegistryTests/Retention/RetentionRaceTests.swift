import Foundation
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import RegistryStore

/// Rows revived during their deletion stay, in either order.
@Suite(.timeLimit(.minutes(3))) struct RetentionRaceTests {
    typealias Fixture = StoreFixture
    typealias R = RetentionFixture

    /// Runs `meanwhile` within the transaction of `first`.
    private static func during<Result: Sendable>(
        _ pool: PostgresPool, _ first: @escaping @Sendable (PostgresTransaction) async throws -> Void,
        meanwhile: () async throws -> Result
    ) async throws -> Result {
        let (held, release) = AsyncStream<Void>.makeStream()
        let (begun, begin) = AsyncStream<Void>.makeStream()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { begin.finish() }
                try await pool.transaction { transaction in
                    try await first(transaction)
                    begin.finish()
                    for await _ in held {}
                }
            }
            defer { release.finish() }
            for await _ in begun {}
            let result = try await meanwhile()
            release.finish()
            try await group.waitForAll()
            return result
        }
    }

    private static func ended(_ claims: [RegistrationRequest], _ store: RegistrationStore, _ pool: PostgresPool)
        async throws
    {
        try await store.register(claims)
        try await store.unregister(claims)
        try await R.age(claims, days: 100, pool)
    }

    @Test func `a registration being revived is skipped without waiting`() async throws {
        try await Fixture.withStore { store, pool in
            let claims = ["01", "02", "03"].map { Fixture.claim("a", $0) }
            try await Self.ended(claims, store, pool)
            let deleted = try await Self.during(pool) { transaction in
                _ = try await store.take([claims[1]], in: transaction)
            } meanwhile: {
                try await R.sweep(pool, step: 1000)
            }
            #expect(deleted == 2)
            #expect(try await store.tokens(of: "a") == ["02"])
            #expect(try await R.sweep(pool) == 0)
            #expect(try await R.tokens(pool) == ["02"])
        }
    }

    @Test func `a registration made during the deletion of the old one is new`() async throws {
        try await Fixture.withStore { store, pool in
            let claim = Fixture.claim("a", "01")
            try await Self.ended([claim], store, pool)
            let registration = try await Self.during(pool) { transaction in
                let old = try await transaction.query(
                    SweepStore.ended(after: SweepStore.first, until: SweepStore.last, before: R.ago(90)))
                #expect(old.count == 1)
                let gone = try await transaction.query("SELECT registry.forget_ended(\([claim.device])::uuid[])")
                #expect(try gone.single(Int.self) == 1)
            } meanwhile: {
                let registration = Task { try await store.register([claim]) }
                try await R.waitForBlockedTransaction(pool)
                return registration
            }
            let taken = try await registration.value
            #expect(taken == [claim.device])
            #expect(try await store.tokens(of: "a") == ["01"])
            #expect(try await R.announced(pool) == ["registered", "signed-out", "registered"])
        }
    }

    @Test func `concurrent revivals and deletions lose no registration`() async throws {
        try await Fixture.withStore { store, pool in
            for round in 0..<10 {
                let claims = (0..<40).map { Fixture.claim("u\(round)-\($0)", String(format: "%02x%04x", $0, round)) }
                try await Self.ended(claims, store, pool)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<2 { group.addTask { _ = try await R.sweep(pool, step: 7) } }
                    for index in stride(from: 0, to: 40, by: 2) {
                        group.addTask {
                            let taken = try await store.register([claims[index]])
                            #expect(taken == [claims[index].device])
                        }
                    }
                    try await group.waitForAll()
                }
                let active = try await pool.query(
                    "SELECT count(*) FROM registry.registration WHERE state = 'active'"
                ).single(Int.self)
                #expect(active == 20 * (round + 1))
            }
            try await R.sweep(pool)
            #expect(try await R.tokens(pool).count == 200)
        }
    }

    @Test func `a user who rejoins during the deletion stays a member`() async throws {
        try await Fixture.withStore { _, pool in
            let memberships = MembershipStore(pool)
            let group = UserGroup.topic(AudienceFixture.name("t"))
            let past = Timestamp.now + .seconds(-86_400 * 100)
            try await memberships.apply(["a", "b"].map { AudienceFixture.member($0, group, joins: false, at: past) })
            let progress = try await Self.during(pool) { transaction in
                _ = try await transaction.execute(MembershipStore.upsert([AudienceFixture.member("a", group)]))
            } meanwhile: {
                try await HistoryStore(pool).advance(now: .now)
            }
            #expect(progress == .finished(memberships: 1, .init()))
            #expect(try await memberships.topics(of: Fixture.user("a")).map(\.rawValue) == ["t"])
            #expect(try await HistoryStore(pool).advance(now: .now) == .finished(memberships: 0, .init()))
            #expect(try await memberships.topics(of: Fixture.user("a")).map(\.rawValue) == ["t"])
        }
    }
}
