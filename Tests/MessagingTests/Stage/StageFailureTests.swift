import AMQP
import Logging
import Messaging
import PushProtocol
import Synchronization
import Testing
import TestSupport

/// Failures of the handler and of its dependencies.
@Suite(.timeLimit(.minutes(3))) struct StageFailureTests {
    private struct Bug: Error {}
    private let bus = InMemoryBus(apps: [demo])

    @Test func `a failing message is isolated from its batch`() async throws {
        let handler = ScriptedHandler { batch in
            if batch.contains(where: { $0.message == "bad" }) { throw Bug() }
            return batch.map { _ in .done }
        }
        try await withStage(bus, handler) { _ in
            for text in ["a", "b", "bad", "c"] { bus.event(text) }
            try await eventually { bus.isSettled(queue.name) }
        }
        #expect(bus.texts(in: "retry.5s") == ["bad"])
        #expect(bus.messages(in: queue.deadName).isEmpty)
        #expect(Set(handler.batches.filter { $0.count == 1 }.flatMap { $0 }).contains("bad"))
    }

    @Test func `a failing message of sixty-four is isolated in a few calls and handled alone on its next attempt`()
        async throws
    {
        let texts = (1...64).map { $0 == 41 ? "bad" : "\($0)" }
        let gate = CancellableGate()
        let handler = ScriptedHandler { batch in
            if batch[0].message == "first" { try await gate.pass() }
            if batch.contains(where: { $0.message == "bad" }) { throw Bug() }
            return batch.map { _ in .done }
        }
        bus.event("first")
        try await withStage(bus, handler, policy: .test(batchSize: 64, prefetch: 200, concurrentBatches: 1)) { _ in
            try await eventually { gate.waiting == 1 && bus.consumers(of: queue.name) == [200] }
            // One burst, so that the number of batches is independent of the pace of deliveries.
            _ = try await bus.publish(texts.map { .event($0) })
            try await eventually { bus.unsettled(in: queue.name) == 65 }
            gate.open()
            try await eventually { bus.isSettled(queue.name) }
            #expect(handler.batches.count <= 25)
            #expect(handler.batches.count { $0.contains("bad") } <= 10)
            #expect(bus.texts(in: "retry.5s") == ["bad"])
            let before = handler.batches.count
            bus.send(["a", "b"])
            bus.expireRetries()
            bus.send(["c", "d"])
            try await eventually { bus.isSettled(queue.name) }
            #expect(handler.batches.dropFirst(before).filter { $0.contains("bad") } == [["bad"]])
        }
        #expect(handler.handled.count { $0.message == "1" } <= 2)
    }

    @Test func `a batch stays within the weight limit, except for a single heavier message`() async throws {
        let handler = WeighingHandler()
        bus.event("1")
        var policy = StagePolicy.test(batchSize: 10, concurrentBatches: 1)
        policy.batchWeight = 10
        try await withStage(bus, handler, policy: policy) { _ in
            try await eventually { bus.isSettled(queue.name) && bus.consumers(of: queue.name) == [20] }
            bus.send(["4", "4", "4", "50", "5", "5", "1"])
            try await eventually { bus.isSettled(queue.name) }
        }
        #expect(handler.batches.allSatisfy { $0.count == 1 || $0.reduce(0, +) <= 10 })
        #expect(handler.batches.flatMap { $0 }.sorted() == [1, 1, 4, 4, 4, 5, 5, 50])
    }

    @Test func `twenty-one drains of a hanging handler do not reach the delivery limit`() async throws {
        for number in 1...40 { bus.event("\(number)") }
        for _ in 1...21 {
            let stuck = CancellableGate()
            let handler = ScriptedHandler { batch in
                try await stuck.pass()
                return batch.map { _ in .done }
            }
            try await withStage(bus, handler, policy: .test(prefetch: 500, drainDeadline: .milliseconds(1))) { _ in
                try await eventually { stuck.waiting > 0 }
            }
        }
        #expect(bus.messages(in: queue.deadName).isEmpty)
        let left = bus.texts(in: queue.name) + bus.texts(in: "retry.5s")
        #expect(left.sorted() == (1...40).map(String.init).sorted())
        // A copy keeps the redelivered flag, which matters for pushes that may be sent only once.
        bus.expireRetries()
        let handler = ScriptedHandler()
        try await withStage(bus, handler) { _ in
            try await eventually { bus.isSettled(queue.name) && Set(handler.handled.map(\.message)).count == 40 }
        }
        #expect(handler.handled.first { $0.message == "1" }?.inbound.redelivered == true)
        #expect(handler.handled.allSatisfy { $0.inbound.attempt == 1 })
    }

    @Test func `a message that always fails is dead-lettered after its last attempt`() async throws {
        let handler = ScriptedHandler { _ in throw Bug() }
        try await withStage(bus, handler) { _ in
            bus.event("bad")
            try await eventually {
                bus.expireRetries()
                return bus.texts(in: queue.deadName) == ["bad"]
            }
        }
        let headers = bus.messages(in: queue.deadName)[0].properties.headers
        #expect(headers[HeaderName.reason]?.text == "handler-failed")
        #expect(headers[HeaderName.attempt]?.int == 8)
        #expect(handler.handled.count == 8)
    }

    @Test(arguments: [0, 1, 3]) func `a wrong number of verdicts settles nothing`(count: Int) async throws {
        let handler = ScriptedHandler { batch in
            batch.count == 2 ? Array(repeating: .done, count: count) : batch.map { _ in .done }
        }
        try await withStage(bus, handler, policy: .test(batchSize: 2)) { _ in
            bus.event("first")
            try await eventually { bus.isSettled(queue.name) }
            bus.event("a")
            bus.event("b")
            try await eventually { bus.isSettled(queue.name) }
        }
        #expect(handler.batches.suffix(2) == [["a"], ["b"]] || handler.batches.count == 3)
        #expect(bus.published.isEmpty)
    }

    @Test func `an outage holds the batch, counts no attempt, and is reported`() async throws {
        let dependency = Dependency()
        let handler = ScriptedHandler(using: dependency)
        let log = CapturingLogger()
        try await withStage(bus, handler, policy: .test(prefetch: 20), logger: log.logger) { stage in
            for number in 1...100 { bus.event("\(number)") }
            try await eventually { stage.status.first?.state == .holding("the dependency") }
            try await eventually { handler.batches.count > 20 }
            #expect(bus.unsettled(in: queue.name) <= 21)
            #expect(log.lines.filter { $0.level == .warning }.count == 1)
            dependency.recover()
            try await eventually { bus.isSettled(queue.name) }
            try await eventually { stage.status.first?.state == .consuming }
        }
        #expect(handler.handled.allSatisfy { $0.inbound.attempt == 1 })
        #expect(bus.published.isEmpty)
        #expect(Set(handler.handled.map(\.message)).count == 100)
    }

    @Test func `an outage while a batch is halved repeats no settled message`() async throws {
        let dependency = Dependency(isUnavailable: false)
        let third = Mutex(true)
        let handler = ScriptedHandler { batch in
            if batch.count > 1 { throw Bug() }
            if batch[0].message == "c",
                third.withLock({ first in
                    defer { first = false }; return first
                })
            {
                throw Outage("the dependency", underlying: Dependency.Unavailable())
            }
            try dependency.use()
            return batch.map { _ in .done }
        }
        for text in ["a", "b", "c", "d"] { bus.event(text) }
        let policy = StagePolicy.test(batchSize: 4)
        try await withStage(bus, handler, policy: policy) { _ in
            try await eventually { bus.isSettled(queue.name) }
        }
        for text in ["a", "b", "d"] { #expect(handler.batches.count { $0 == [text] } == 1) }
        #expect(bus.messages(in: "retry.5s").isEmpty)
    }

    @Test func `a message that crashes the process is dead-lettered alone`() async throws {
        // Each round is a process: it crashes on `killer`, and all its unsettled messages are requeued.
        for number in 1...40 { bus.event(number == 25 ? "killer" : "\(number)") }
        var rounds = 0
        while !bus.isSettled(queue.name), rounds < 60 {
            rounds += 1
            let died = CancellableGate()
            let handler = ScriptedHandler { batch in
                if batch.contains(where: { $0.message == "killer" }) {
                    try await died.pass()
                }
                return batch.map { _ in .done }
            }
            let connection = CrashableBus(bus)
            let process = Task {
                let stage = Stage(
                    service: "rules", queues: [queue], policy: .test(), bus: connection, handler: handler,
                    logger: CapturingLogger().logger)
                try await stage.run()
            }
            try await eventually { died.waiting == 1 || bus.isSettled(queue.name) }
            connection.crash()
            process.cancel()
            try await process.value
        }
        #expect(bus.texts(in: queue.deadName) == ["killer"])
        #expect(rounds < 60)
    }
}
