import PushProtocol
import Synchronization
import TestSupport

@testable import Messaging

/// A handler whose messages are texts, and which does what the test says. `poison` cannot be decoded.
final class ScriptedHandler: StageHandler {
    typealias Script = @Sendable ([Delivery<String>]) async throws -> [Verdict]

    private let script: Script
    private let calls = Mutex<[[Delivery<String>]]>([])

    init(_ script: @escaping Script) { self.script = script }

    /// Every message is done.
    convenience init() { self.init { $0.map { _ in .done } } }

    /// One verdict a message.
    convenience init(each verdict: @escaping @Sendable (Delivery<String>) throws -> Verdict) {
        self.init { try $0.map(verdict) }
    }

    /// The batches as they came, failed ones included.
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

/// A handler of numbers, each of which is its weight.
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

/// Something that is away until it comes back.
final class Dependency: Sendable {
    struct Away: Error {}

    private let isAway: Mutex<Bool>

    init(isAway: Bool = true) { self.isAway = Mutex(isAway) }

    func goesAway() { isAway.withLock { $0 = true } }

    func comesBack() { isAway.withLock { $0 = false } }

    func use() throws {
        if isAway.withLock({ $0 }) { throw Outage("the dependency", underlying: Away()) }
    }
}

/// Holds whoever comes until it is opened. Obeys cancellation.
final class Turnstile: Sendable {
    private let state = Mutex((isOpen: false, waiting: 0))

    var waiting: Int { state.withLock { $0.waiting } }

    func open() { state.withLock { $0.isOpen = true } }

    func pass() async throws {
        state.withLock { $0.waiting += 1 }
        defer { state.withLock { $0.waiting -= 1 } }
        try await eventually("the opening", within: .seconds(600)) { state.withLock { $0.isOpen } }
    }
}

/// What a handler can call back into, set after both exist.
final class Reference: Sendable {
    private let action = Mutex<(@Sendable () async -> Void)?>(nil)

    func set(_ new: @escaping @Sendable () async -> Void) { action.withLock { $0 = new } }

    func pause() async { await action.withLock { $0 }?() }
}
