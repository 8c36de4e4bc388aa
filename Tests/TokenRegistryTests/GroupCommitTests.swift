import Postgres
import PushProtocol
import Synchronization
import TestSupport
import Testing

@testable import TokenRegistry

@Suite struct GroupCommitTests {
    private static let refusal = PostgresError(.sqlState("23514"), operation: "INSERT", detail: "a check")
    private static let timeout = PostgresError(.sqlState("57014"), operation: "INSERT", detail: "statement timeout")
    private static let outage = PostgresError(.connectionFailed, operation: "connect", detail: "refused")

    @Test func `what comes while transactions run is stored together, each claim once`() async throws {
        let storage = Storage()
        let answers = try await answers(of: storage, to: 100)
        #expect(answers.values.allSatisfy { $0 == nil })
        #expect(storage.transactions.map(\.count) == [1, 1, 1, 1, 96])
        #expect(Set(storage.transactions.joined()) == Set((0..<100).map { claim($0).user }))
    }

    @Test func `no transaction has more claims than the limit`() async throws {
        let storage = Storage()
        let many = GroupCommit.mostClaims * 3
        _ = try await answers(of: storage, to: many)
        #expect(storage.transactions.allSatisfy { $0.count <= GroupCommit.mostClaims })
        #expect(storage.transactions.joined().count == many)
    }

    @Test func `a claim that the database refuses is refused alone`() async throws {
        let storage = Storage { users in if users.contains("user-7") { throw Self.refusal } }
        let answers = try await answers(of: storage, to: 20)
        #expect(answers.filter { $0.value != nil }.keys.sorted() == [7])
        #expect(answers[7] == Self.refusal)
    }

    @Test func `when the database is away everybody is told, and nothing is tried again`() async throws {
        let storage = Storage { _ in throw Self.outage }
        let answers = try await answers(of: storage, to: 20)
        #expect(answers.values.allSatisfy { $0 == Self.outage })
        #expect(storage.transactions.joined().count == GroupCommit.mostTransactions)
    }

    @Test func `an outage fails all claims that wait at once`() async throws {
        let storage = Storage { _ in throw Self.outage }
        let many = GroupCommit.mostClaims * 10
        let answers = try await answers(of: storage, to: many)
        #expect(answers.count == many && answers.values.allSatisfy { $0 == Self.outage })
        // The transactions that were under way, and no one for each further 128 claims.
        #expect(storage.transactions.count <= 2 * GroupCommit.mostTransactions)
    }

    @Test func `beyond the bound a caller is refused at once`() async throws {
        let storage = Storage()
        let group = GroupCommit(mostWaiting: 3, storage.store)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            defer { storage.gate.open() }
            for number in 0..<GroupCommit.mostTransactions {
                tasks.addTask { try await group.register(claim(number)) }
                try await eventually("a transaction for \(number)") { storage.transactions.count == number + 1 }
            }
            for number in 10..<13 { tasks.addTask { try await group.register(claim(number)) } }
            try await eventually("three wait") { await group.backlog == 3 }
            await #expect(throws: GroupCommit.Full.self) { try await group.register(claim(20)) }
            storage.gate.open()
            try await tasks.waitForAll()
        }
        #expect(try await group.register(claim(20)))
    }

    @Test func `a claim whose statement times out does not take the others with it`() async throws {
        let storage = Storage { users in if users.contains("user-7") { throw Self.timeout } }
        let answers = try await answers(of: storage, to: 20)
        #expect(answers.filter { $0.value != nil }.keys.sorted() == [7])
        #expect(answers[7] == Self.timeout)
    }

    @Test func `where every statement times out, the company ends after a few`() async throws {
        let storage = Storage { _ in throw Self.timeout }
        let answers = try await answers(of: storage, to: 100)
        #expect(answers.values.allSatisfy { $0 == Self.timeout })
        #expect(storage.transactions.count <= 4 + 2 * GroupCommit.mostTimeouts + 8)
    }

    /// What each of so many callers was told, `nil` for nothing bad. The first keep all transactions busy, alone, until
    /// everybody else is there.
    private func answers(of storage: Storage, to callers: Int) async throws -> [Int: PostgresError?] {
        let group = GroupCommit(storage.store)
        return try await withThrowingTaskGroup { tasks in
            // Whoever waits at the gate would keep a test that fails from ending.
            defer { storage.gate.open() }
            for number in 0..<callers {
                tasks.addTask {
                    do {
                        try await group.register(claim(number))
                        return (number, PostgresError?.none)
                    } catch let error as PostgresError {
                        return (number, error)
                    }
                }
                guard number < GroupCommit.mostTransactions else { continue }
                try await eventually("a transaction for \(number)") { storage.transactions.count == number + 1 }
            }
            let rest = callers - GroupCommit.mostTransactions
            try await eventually("everybody else") { await group.backlog == rest }
            storage.gate.open()
            return try await tasks.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }
}

private func claim(_ number: Int) -> RegistrationRequest { StoreFixture.claim("user-\(number)", "0\(number)") }

/// Holds every transaction until its gate is open, and then does what the test says with its users.
private final class Storage: Sendable {
    let gate = Gate()
    private let seen = Mutex<[[UserID]]>([])
    private let script: @Sendable ([String]) throws -> Void

    init(_ script: @escaping @Sendable ([String]) throws -> Void = { _ in }) {
        self.script = script
    }

    var transactions: [[UserID]] { seen.withLock { $0 } }

    var store: GroupCommit.Store {
        { [self] claims in
            seen.withLock { $0.append(claims.map(\.user)) }
            await gate.pass()
            try script(claims.map(\.user.rawValue))
            return Set(claims.map(\.device))
        }
    }
}
