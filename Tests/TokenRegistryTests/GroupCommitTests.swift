import Postgres
import PushProtocol
import Synchronization
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

@Suite struct GroupCommitTests {
    private static let refusal = PostgresError(.sqlState("23514"), operation: "INSERT", detail: "a check")
    private static let timeout = PostgresError(.sqlState("57014"), operation: "INSERT", detail: "statement timeout")
    private static let outage = PostgresError(.connectionFailed, operation: "connect", detail: "refused")

    @Test func `requests that arrive during transactions are stored together, each once`() async throws {
        let storage = Storage()
        let answers = try await answers(of: storage, to: 100)
        #expect(answers.values.allSatisfy { $0 == nil })
        #expect(storage.transactions.map(\.count) == [1, 1, 1, 1, 96])
        #expect(Set(storage.transactions.joined()) == Set((0..<100).map { claim($0).user }))
    }

    @Test func `no transaction has more requests than the limit`() async throws {
        let storage = Storage()
        let many = GroupCommit.mostClaims * 3
        _ = try await answers(of: storage, to: many)
        #expect(storage.transactions.allSatisfy { $0.count <= GroupCommit.mostClaims })
        #expect(storage.transactions.joined().count == many)
    }

    @Test func `a request that the database rejects fails alone`() async throws {
        let storage = Storage { users in if users.contains("user-7") { throw Self.refusal } }
        let answers = try await answers(of: storage, to: 20)
        #expect(answers.filter { $0.value != nil }.keys.sorted() == [7])
        #expect(answers[7] == Self.refusal)
    }

    @Test func `when the database is away all requests fail, and nothing is retried`() async throws {
        let storage = Storage { _ in throw Self.outage }
        let answers = try await answers(of: storage, to: 20)
        #expect(answers.values.allSatisfy { $0 == Self.outage })
        #expect(storage.transactions.joined().count == GroupCommit.mostTransactions)
    }

    @Test func `an outage fails all waiting requests at once`() async throws {
        let storage = Storage { _ in throw Self.outage }
        let many = GroupCommit.mostClaims * 10
        let answers = try await answers(of: storage, to: many)
        #expect(answers.count == many && answers.values.allSatisfy { $0 == Self.outage })
        // The transactions in progress, and none for each further 128 requests.
        #expect(storage.transactions.count <= 2 * GroupCommit.mostTransactions)
    }

    @Test func `beyond the limit a caller fails at once`() async throws {
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

    @Test func `a request whose statement times out does not fail the others`() async throws {
        let storage = Storage { users in if users.contains("user-7") { throw Self.timeout } }
        let answers = try await answers(of: storage, to: 20)
        #expect(answers.filter { $0.value != nil }.keys.sorted() == [7])
        #expect(answers[7] == Self.timeout)
    }

    @Test func `when every statement times out, the batch fails after a few`() async throws {
        let storage = Storage { _ in throw Self.timeout }
        let answers = try await answers(of: storage, to: 100)
        #expect(answers.values.allSatisfy { $0 == Self.timeout })
        #expect(storage.transactions.count <= 4 + 2 * GroupCommit.mostTimeouts + 8)
    }

    /// The result of each caller; `nil` for success. The first callers occupy all transactions until the others wait.
    private func answers(of storage: Storage, to callers: Int) async throws -> [Int: PostgresError?] {
        let group = GroupCommit(storage.store)
        return try await withThrowingTaskGroup { tasks in
            // A caller that waits at the gate would keep a failing test from ending.
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

/// Holds every transaction until its gate is open, then runs the test's closure with the users.
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
