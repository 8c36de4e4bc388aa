import AMQP
import PushProtocol
import Testing

@testable import Messaging

@Suite struct QueueMachineTests {
    private var policy = StagePolicy(batchSize: 3, prefetch: 10, concurrentBatches: 2)

    /// A machine whose intake is wide already.
    private func wide(_ policy: StagePolicy? = nil) -> QueueMachine {
        var machine = QueueMachine(policy: policy ?? self.policy)
        _ = machine.start()
        var actions = machine.on(.delivered([delivery(999)])) + machine.on(.subscriptionEnded)
        if actions.started.isEmpty { actions = machine.on(.aged) }
        _ = machine.on(.finished(actions.started.first!.id, .settled))
        return machine
    }

    @Test func `nobody waits for company while little runs, and what came meanwhile is the next batch`() {
        var machine = wide(StagePolicy(batchSize: 3, prefetch: 10, concurrentBatches: 4, promptBatches: 2))
        let first = machine.on(.delivered([delivery(1)])).started
        #expect(first.map(\.deliveries.values) == [[1]])
        #expect(machine.on(.delivered([delivery(2)])).started.map(\.deliveries.values) == [[2]])
        let waiting = machine.on(.delivered([delivery(3)]))
        #expect(waiting.started.isEmpty && waiting.armsAge)
        #expect(machine.on(.delivered([delivery(4)])).started.isEmpty)
        #expect(machine.on(.finished(first[0].id, .settled)).started.map(\.deliveries.values) == [[3, 4]])
    }

    @Test func `a full batch starts at once and a partial one when it is of age`() {
        var machine = wide()
        let first = machine.on(.delivered([delivery(1), delivery(2), delivery(3), delivery(4)]))
        #expect(first.started.map(\.deliveries.values) == [[1, 2, 3]])
        #expect(first.armsAge)
        #expect(machine.on(.aged).started.map(\.deliveries.values) == [[4]])
    }

    @Test func `a heavy batch starts at once, and what would make it too heavy is in the next`() {
        let (light, heavy) = (String(repeating: "x", count: 40), String(repeating: "x", count: 200))
        var machine = wide(
            StagePolicy(batchSize: 10, batchBytes: 100, prefetch: 10, concurrentBatches: 9, promptBatches: 0))
        #expect(machine.on(.delivered([delivery(1, body: light), delivery(2, body: light)])).started.isEmpty)
        #expect(machine.on(.delivered([delivery(3, body: light)])).started.map(\.deliveries.values) == [[1, 2]])
        // One that is too heavy by itself is a batch by itself.
        let more = machine.on(
            .delivered([delivery(4, body: heavy), delivery(5, body: heavy), delivery(6, body: light)]))
        #expect(more.started.map(\.deliveries.values) == [[3], [4], [5]])
        #expect(machine.on(.aged).started.map(\.deliveries.values) == [[6]])
    }

    @Test func `what is as heavy as a batch may be does not wait to be of age`() {
        var machine = wide(
            StagePolicy(batchSize: 10, batchBytes: 80, prefetch: 10, concurrentBatches: 9, promptBatches: 0))
        let body = String(repeating: "x", count: 40)
        #expect(
            machine.on(.delivered([delivery(1, body: body), delivery(2, body: body)])).started.map(\.deliveries.values)
                == [[1, 2]])
    }

    @Test func `the bytes of headers count like those of bodies`() {
        var machine = wide(
            StagePolicy(batchSize: 10, batchBytes: 80, prefetch: 10, concurrentBatches: 9, promptBatches: 0))
        let heavy = AMQPProperties(receivedBytes: 40)
        let deliveries = [delivery(1, properties: heavy, body: ""), delivery(2, properties: heavy, body: "")]
        #expect(machine.on(.delivered(deliveries)).started.map(\.deliveries.values) == [[1, 2]])
    }

    @Test func `no more batches run at once than the policy allows, and the rest follow as they finish`() {
        var machine = wide()
        let started = machine.on(.delivered((1...9).map { delivery($0) })).started
        #expect(started.map(\.deliveries.values) == [[1, 2, 3], [4, 5, 6]])
        #expect(machine.on(.finished(started[0].id, .settled)).started.map(\.deliveries.values) == [[7, 8, 9]])
        #expect(machine.inFlight == 6)
    }

    @Test func `a starting process takes one message at a time until one is above suspicion`() {
        var machine = QueueMachine(policy: policy)
        #expect(machine.start().prefetches == [1])
        let suspect = machine.on(.delivered([delivery(1, redelivered: true)]))
        #expect(suspect.started.map(\.deliveries.values) == [[1]])
        #expect(!suspect.unsubscribes)
        _ = machine.on(.finished(suspect.started[0].id, .settled))
        #expect(machine.on(.delivered([delivery(2)])).unsubscribes)
        #expect(machine.on(.subscriptionEnded).prefetches == [10])
    }

    @Test func `a redelivered message is handled alone, with nothing of its queue beside it`() {
        var machine = wide()
        let fresh = machine.on(.delivered([delivery(1), delivery(2), delivery(3), delivery(4, redelivered: true)]))
        #expect(fresh.started.map(\.deliveries.values) == [[1, 2, 3]])
        let alone = machine.on(.finished(fresh.started[0].id, .settled))
        #expect(alone.started.map(\.deliveries.values) == [[4]])
        #expect(machine.on(.delivered([delivery(5), delivery(6), delivery(7)])).started.isEmpty)
        #expect(machine.on(.finished(alone.started[0].id, .settled)).started.map(\.deliveries.values) == [[5, 6, 7]])
    }

    @Test func `after a few suspects did no harm the rest of that return are believed`() {
        var machine = wide()
        var actions = machine.on(.delivered((1...6).map { delivery($0, redelivered: true, returns: 1) }))
        for expected in UInt64(1)...3 {
            #expect(actions.started.map(\.deliveries.values) == [[expected]])
            actions = machine.on(.finished(actions.started[0].id, .settled))
        }
        #expect(actions.started.map(\.deliveries.values) == [[4, 5, 6]])
    }

    @Test func `a message that came back several times is never believed`() {
        var machine = wide()
        var actions = machine.on(.delivered((1...6).map { delivery($0, redelivered: true, returns: 3) }))
        for expected in UInt64(1)...6 {
            #expect(actions.started.map(\.deliveries.values) == [[expected]])
            actions = machine.on(.finished(actions.started[0].id, .settled))
        }
    }

    @Test func `during an outage nothing new starts, and the held batch is tried again`() {
        var machine = wide()
        let work = machine.on(.delivered((1...3).map { delivery($0) })).started[0]
        let held = machine.on(.finished(work.id, .held(work, by: "Postgres")))
        #expect(held.retriesAfterFailures == [1])
        #expect(machine.outage == "Postgres")
        #expect(machine.on(.delivered((4...6).map { delivery($0) })).started.isEmpty)
        let again = machine.on(.retryDue(work.id)).started
        #expect(again.map(\.deliveries.values) == [[1, 2, 3]])
        #expect(machine.on(.finished(work.id, .held(again[0], by: "Postgres"))).retriesAfterFailures == [2])
        _ = machine.on(.retryDue(work.id))
        #expect(machine.on(.finished(work.id, .settled)).started.map(\.deliveries.values) == [[4, 5, 6]])
        #expect(machine.outage == nil)
    }

    @Test func `when one held batch gets through, the others are tried at once`() {
        var machine = wide()
        let both = machine.on(.delivered((1...6).map { delivery($0) })).started
        for work in both { _ = machine.on(.finished(work.id, .held(work, by: "Postgres"))) }
        _ = machine.on(.retryDue(both[0].id))
        #expect(machine.on(.finished(both[0].id, .settled)).started.map(\.id) == [both[1].id])
        #expect(machine.on(.retryDue(both[1].id)).started.isEmpty)
    }

    @Test func `ten reconnects during an outage leave each message in hand once`() {
        var machine = wide(StagePolicy(batchSize: 3, prefetch: 9, concurrentBatches: 2, promptBatches: 0))
        func hold(_ works: [Work]) {
            for work in works { _ = machine.on(.finished(work.id, .held(work, by: "Postgres"))) }
        }
        hold(machine.on(.delivered((1...9).map { delivery($0) })).started)
        for generation in UInt64(2)...11 {
            let again = (1...9).map { delivery($0, redelivered: true, generation: generation) }
            hold(machine.on(.delivered(again)).started)
        }
        var handled: [AMQPDeliveryTag] = []
        var started = machine.on(.retryDue(2)).started
        for id in 0..<200 where started.isEmpty { started = machine.on(.retryDue(id)).started }
        while let work = started.first {
            handled += work.deliveries.map(\.tag)
            started += machine.on(.finished(work.id, .settled)).started
            started.removeFirst()
        }
        #expect(handled.map(\.value).sorted() == Array(1...9))
        #expect(handled.allSatisfy { $0.generation == 11 })
        #expect(machine.inFlight == 0)
    }

    @Test func `work of a lost connection that meets an outage is dropped, not held`() {
        var machine = wide()
        let work = machine.on(.delivered((1...3).map { delivery($0) })).started[0]
        let started = machine.on(.delivered((1...3).map { delivery($0, generation: 2) })).started
        #expect(started.map(\.deliveries.values) == [[1, 2, 3]])
        #expect(machine.on(.finished(work.id, .held(work, by: "Postgres"))).retriesAfterFailures.isEmpty)
        #expect(machine.outage == "Postgres")
        // A delivery of the old connection that comes late is dropped.
        #expect(machine.on(.delivered([delivery(4)])).started.isEmpty)
        _ = machine.on(.finished(started[0].id, .settled))
        #expect(machine.inFlight == 0)
    }

    @Test func `deliveries in hand for as long as the policy allows go back, unless they were begun`() {
        var machine = wide()
        let started = machine.on(.delivered((1...6).map { delivery($0) })).started
        let held = machine.on(.finished(started[0].id, .held(started[0], by: "Postgres")))
        #expect(held.armsHold)
        #expect(machine.on(.delivered([delivery(7)])).armsHold == false)
        #expect(machine.on(.holdTimePassed).givenBack.isEmpty)
        _ = machine.on(.delivered([delivery(8)]))
        let passed = machine.on(.holdTimePassed)
        #expect(passed.givenBack == [7, 1, 2, 3])
        #expect(passed.armsHold)
        #expect(machine.inFlight == 3)
        #expect(machine.on(.aged).started.map(\.deliveries.values) == [[8]])
    }

    @Test func `what a pause keeps is set aside before the broker takes it for lost`() {
        var machine = wide(StagePolicy(batchSize: 3, prefetch: 10, concurrentBatches: 2, promptBatches: 0))
        _ = machine.on(.delivered([delivery(2), delivery(1, redelivered: true, returns: 2)]))
        #expect(machine.on(.pause).givenBack == [2])
        #expect(machine.on(.holdTimePassed).started.isEmpty)
        let aside = machine.on(.holdTimePassed).started
        #expect(aside.map(\.purpose) == [.settingAside] && aside.map(\.deliveries.values) == [[1]])
    }

    @Test(arguments: [QueueMachine.Event.pause, .drain])
    func `a message that came back often is set aside rather than returned once more`(event: QueueMachine.Event) {
        var machine = wide(StagePolicy(batchSize: 3, prefetch: 10, concurrentBatches: 2, promptBatches: 0))
        let limit = Topology.deliveryLimit / 2
        let deliveries = [delivery(1), delivery(2, redelivered: true, returns: limit)]
        _ = machine.on(.delivered(deliveries))
        let stopped = machine.on(event)
        #expect(stopped.givenBack == [1])
        // A pause keeps it for a while first.
        guard case .drain = event else { return }
        #expect(stopped.started.map(\.purpose) == [.settingAside])
        _ = machine.on(.subscriptionEnded)
        #expect(!machine.isFinished)
        _ = machine.on(.finished(stopped.started[0].id, .settled))
        #expect(machine.isFinished)
    }

    @Test func `a message that failed alone is a batch of its own when it comes again`() {
        var machine = wide(StagePolicy(batchSize: 10, prefetch: 10, concurrentBatches: 9))
        let failed = delivery(
            3, exchange: "return", properties: AMQPProperties(headers: [HeaderName.failedAlone: .bool(true)]))
        let forged = delivery(5, properties: AMQPProperties(headers: [HeaderName.failedAlone: .bool(true)]))
        let started = machine.on(.delivered([delivery(1), delivery(2), failed, delivery(4), forged])).started
        #expect(started.map(\.deliveries.values) == [[1, 2], [3]])
        #expect(machine.on(.aged).started.map(\.deliveries.values) == [[4, 5]])
    }

    @Test(arguments: [QueueMachine.Event.pause, .drain])
    func `stopping gives back what is waiting or held, and late deliveries too`(event: QueueMachine.Event) {
        var machine = wide()
        let started = machine.on(.delivered((1...7).map { delivery($0) })).started
        _ = machine.on(.finished(started[1].id, .held(started[1], by: "Postgres")))
        let stopped = machine.on(event)
        #expect(stopped.unsubscribes)
        #expect(stopped.givenBack == [7, 4, 5, 6])
        #expect(machine.on(.delivered([delivery(8)])).givenBack == [8])
        #expect(!machine.isFinished)
        #expect(machine.on(.finished(started[0].id, .held(started[0], by: "Postgres"))).givenBack == [1, 2, 3])
    }

    @Test func `a pause is never what makes a message a suspect for good`() {
        var machine = wide(StagePolicy(batchSize: 3, prefetch: 10, concurrentBatches: 2, promptBatches: 0))
        let deliveries =
            [delivery(1), delivery(2, redelivered: true, returns: 1)]
            + (3...4).map { delivery($0, redelivered: true, returns: Suspicion.hardenedCount - 1) }
        _ = machine.on(.delivered(deliveries))
        #expect(machine.on(.pause).givenBack == [1, 2])
        #expect(machine.on(.pause).isEmpty)
        let late = [delivery(5), delivery(6, redelivered: true, returns: Suspicion.hardenedCount - 1)]
        #expect(machine.on(.delivered(late)).givenBack == [5])
        _ = machine.on(.subscriptionEnded)
        // They are there when it goes on, and none is lost when it does not.
        var drained = machine
        #expect(drained.on(.drain).givenBack == [3, 4, 6])
        #expect(drained.isFinished)
        var actions = machine.on(.resume)
        for expected in UInt64(3)...4 {
            #expect(actions.started.map(\.deliveries.values) == [[expected]])
            actions = machine.on(.finished(actions.started[0].id, .settled))
        }
    }

    @Test func `a drain is over when the consumer is gone and the last batch is settled`() {
        var machine = wide()
        let work = machine.on(.delivered((1...3).map { delivery($0) })).started[0]
        _ = machine.on(.drain)
        _ = machine.on(.subscriptionEnded)
        #expect(!machine.isFinished)
        _ = machine.on(.finished(work.id, .settled))
        #expect(machine.isFinished)
    }

    @Test func `a paused queue consumes again when resumed, also before its consumer is gone`() {
        var machine = wide()
        _ = machine.on(.pause)
        #expect(machine.on(.resume).prefetches.isEmpty)
        #expect(machine.on(.subscriptionEnded).prefetches == [10])
        _ = machine.on(.pause)
        #expect(machine.on(.subscriptionEnded).prefetches.isEmpty)
        #expect(machine.isQuiet)
        #expect(machine.on(.resume).prefetches == [10])
    }

    @Test func `a subscription that ends unasked ends the queue`() {
        var machine = wide()
        let actions = machine.on(.subscriptionEnded)
        #expect(actions.contains { if case .reportLoss = $0 { true } else { false } })
        #expect(machine.isFinished)
    }
}

extension [QueueMachine.Action] {
    fileprivate var started: [Work] { compactMap { if case .start(let work) = $0 { work } else { nil } } }
    fileprivate var prefetches: [UInt16] { compactMap { if case .subscribe(let count) = $0 { count } else { nil } } }
    fileprivate var unsubscribes: Bool { contains { if case .unsubscribe = $0 { true } else { false } } }
    fileprivate var armsHold: Bool { contains { if case .armHold = $0 { true } else { false } } }
    fileprivate var armsAge: Bool { contains { if case .armAge = $0 { true } else { false } } }
    fileprivate var givenBack: [UInt64] {
        flatMap { if case .giveBack(let tags) = $0 { tags.map(\.value) } else { [] as [UInt64] } }
    }
    fileprivate var retriesAfterFailures: [Int] {
        compactMap { if case .armRetry(_, let failures) = $0 { failures } else { nil } }
    }
}
