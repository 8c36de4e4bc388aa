import PushProtocol
import Synchronization
import TestSupport

@testable import Messaging

/// A handler of text messages that runs a script of the test. `poison` cannot be decoded.
final class ScriptedHandler: StageHandler {
    typealias Script = @Sendable ([Delivery<String>]) async throws -> [Verdict]

    private let script: Script
    private let calls = Mutex<[[Delivery<String>]]>([])

    init(_ script: @escaping Script) { self.script = script }

    /// Returns `done` for every message.
    convenience init() { self.init { $0.map { _ in .done } } }

    /// Calls `verdict` for each message.
    convenience init(each verdict: @escaping @Sendable (Delivery<String>) throws -> Verdict) {
        self.init { try $0.map(verdict) }
    }

    /// Uses a dependency for each batch, and returns `done` for every message.
    convenience init(using dependency: Dependency) {
        self.init { batch in
            try dependency.use()
            return batch.map { _ in .done }
        }
    }

    /// All batches in order, including failed ones.
    var batches: [[String]] { calls.withLock { $0.map { $0.map(\.message) } } }
    var handled: [Delivery<String>] { calls.withLock { $0.flatMap { $0 } } }

    func decode(_ inbound: Inbound) throws(WireError) -> String {
        let text = String(decoding: inbound.body, as: UTF8.self)
        guard text != "poison" else { throw .notJSON("it is poison") }
        return text
    }

    func handle(_ batch: [Delivery<String>]) async throws -> [Verdict] {
        calls.withLock { $0.append(batch) }
        return try await script(batch)
    }
}

/// A handler of numbers; each number is its weight.
final class WeighingHandler: StageHandler {
    private let calls = Mutex<[[Int]]>([])

    var batches: [[Int]] { calls.withLock { $0 } }

    func decode(_ inbound: Inbound) throws(WireError) -> Int {
        guard let number = Int(String(decoding: inbound.body, as: UTF8.self)) else { throw .notJSON("no number") }
        return number
    }

    func weight(of message: Int) -> Int { message }

    func handle(_ batch: [Delivery<Int>]) async throws -> [Verdict] {
        calls.withLock { $0.append(batch.map(\.message)) }
        return batch.map { _ in .done }
    }
}

/// A dependency that can be unavailable.
final class Dependency: Sendable {
    struct Unavailable: Error {}

    private let isUnavailable: Mutex<Bool>

    init(isUnavailable: Bool = true) { self.isUnavailable = Mutex(isUnavailable) }

    func fail() { isUnavailable.withLock { $0 = true } }

    func recover() { isUnavailable.withLock { $0 = false } }

    func use() throws {
        if isUnavailable.withLock({ $0 }) { throw Outage("the dependency", underlying: Unavailable()) }
    }
}

/// Suspends callers until it is opened. Supports cancellation.
final class CancellableGate: Sendable {
    private let state = Mutex((isOpen: false, waiting: 0))

    var waiting: Int { state.withLock { $0.waiting } }

    func open() { state.withLock { $0.isOpen = true } }

    func pass() async throws {
        state.withLock { $0.waiting += 1 }
        defer { state.withLock { $0.waiting -= 1 } }
        try await eventually("the opening", within: .seconds(600)) { state.withLock { $0.isOpen } }
    }
}

/// A callback for a handler, set after both exist.
final class PauseCallback: Sendable {
    private let action = Mutex<(@Sendable () async -> Void)?>(nil)

    func set(_ new: @escaping @Sendable () async -> Void) { action.withLock { $0 = new } }

    func pause() async { await action.withLock { $0 }?() }
}
