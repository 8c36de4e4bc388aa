import AMQP
import PushProtocol
import Testing

@testable import Messaging

@Suite struct QueueStateMachineTests {
    private var policy = StagePolicy(batchSize: 3, prefetch: 10, concurrentBatches: 2)

    /// A state machine whose consumer has the full prefetch.
    private func fullPrefetchMachine(_ policy: StagePolicy? = nil) -> QueueStateMachine {
        var machine = QueueStateMachine(policy: policy ?? self.policy)
        _ = machine.start()
        var actions = machine.on(.delivered([delivery(999)])) + machine.on(.subscriptionEnded)
        if actions.started.isEmpty { actions = machine.on(.lingerElapsed) }
        _ = machine.on(.finished(actions.started.first!.id, .settled))
        return machine
    }

    @Test func `a batch starts immediately while few are running, and later deliveries form the next batch`() {
        var machine = fullPrefetchMachine(
            StagePolicy(batchSize: 3, prefetch: 10, concurrentBatches: 4, eagerBatches: 2))
        let first = machine.on(.delivered([delivery(1)])).started
        #expect(first.map(\.deliveries.values) == [[1]])
        #expect(machine.on(.delivered([delivery(2)])).started.map(\.deliveries.values) == [[2]])
        let waiting = machine.on(.delivered([delivery(3)]))
        #expect(waiting.started.isEmpty && waiting.armsLinger)
        #expect(machine.on(.delivered([delivery(4)])).started.isEmpty)
        #expect(machine.on(.finished(first[0].id, .settled)).started.map(\.deliveries.values) == [[3, 4]])
    }

    @Test func `a full batch starts at once and a partial one after the linger time`() {
        var machine = fullPrefetchMachine()
        let first = machine.on(.delivered([delivery(1), delivery(2), delivery(3), delivery(4)]))
        #expect(first.started.map(\.deliveries.values) == [[1, 2, 3]])
        #expect(first.armsLinger)
        #expect(machine.on(.lingerElapsed).started.map(\.deliveries.values) == [[4]])
    }

    @Test func `a batch starts at its byte limit, and further deliveries are in the next batch`() {
        let (light, heavy) = (String(repeating: "x", count: 40), String(repeating: "x", count: 200))
        var machine = fullPrefetchMachine(
            StagePolicy(batchSize: 10, batchBytes: 100, prefetch: 10, concurrentBatches: 9, eagerBatches: 0))
        #expect(machine.on(.delivered([delivery(1, body: light), delivery(2, body: light)])).started.isEmpty)
        #expect(machine.on(.delivered([delivery(3, body: light)])).started.map(\.deliveries.values) == [[1, 2]])
        // A delivery above the byte limit is a batch of its own.
        let more = machine.on(
            .delivered([delivery(4, body: heavy), delivery(5, body: heavy), delivery(6, body: light)]))
        #expect(more.started.map(\.deliveries.values) == [[3], [4], [5]])
        #expect(machine.on(.lingerElapsed).started.map(\.deliveries.values) == [[6]])
    }

    @Test func `a batch with exactly the byte limit starts at once`() {
        var machine = fullPrefetchMachine(
            StagePolicy(batchSize: 10, batchBytes: 80, prefetch: 10, concurrentBatches: 9, eagerBatches: 0))
        let body = String(repeating: "x", count: 40)
        #expect(
            machine.on(.delivered([delivery(1, body: body), delivery(2, body: body)])).started.map(\.deliveries.values)
                == [[1, 2]])
    }

    @Test func `header bytes count like body bytes`() {
        var machine = fullPrefetchMachine(
            StagePolicy(batchSize: 10, batchBytes: 80, prefetch: 10, concurrentBatches: 9, eagerBatches: 0))
        let heavy = AMQPProperties(receivedBytes: 40)
        let deliveries = [delivery(1, properties: heavy, body: ""), delivery(2, properties: heavy, body: "")]
        #expect(machine.on(.delivered(deliveries)).started.map(\.deliveries.values) == [[1, 2]])
    }

    @Test func `concurrent batches stay within the limit`() {
        var machine = fullPrefetchMachine()
        let started = machine.on(.delivered((1...9).map { delivery($0) })).started
        #expect(started.map(\.deliveries.values) == [[1, 2, 3], [4, 5, 6]])
        #expect(machine.on(.finished(started[0].id, .settled)).started.map(\.deliveries.values) == [[7, 8, 9]])
        #expect(machine.inFlight == 6)
    }

    @Test func `a new process uses prefetch 1 until a message needs no isolation`() {
        var machine = QueueStateMachine(policy: policy)
        #expect(machine.start().prefetches == [1])
        let suspect = machine.on(.delivered([delivery(1, redelivered: true)]))
        #expect(suspect.started.map(\.deliveries.values) == [[1]])
        #expect(!suspect.unsubscribes)
        _ = machine.on(.finished(suspect.started[0].id, .settled))
        #expect(machine.on(.delivered([delivery(2)])).unsubscribes)
        #expect(machine.on(.subscriptionEnded).prefetches == [10])
    }

    @Test func `a redelivered message is handled alone in its queue`() {
        var machine = fullPrefetchMachine()
        let fresh = machine.on(.delivered([delivery(1), delivery(2), delivery(3), delivery(4, redelivered: true)]))
        #expect(fresh.started.map(\.deliveries.values) == [[1, 2, 3]])
        let alone = machine.on(.finished(fresh.started[0].id, .settled))
        #expect(alone.started.map(\.deliveries.values) == [[4]])
        #expect(machine.on(.delivered([delivery(5), delivery(6), delivery(7)])).started.isEmpty)
        #expect(machine.on(.finished(alone.started[0].id, .settled)).started.map(\.deliveries.values) == [[5, 6, 7]])
    }

    @Test func `after a few successes redelivered messages are batched again`() {
        var machine = fullPrefetchMachine()
        var actions = machine.on(.delivered((1...6).map { delivery($0, redelivered: true, returns: 1) }))
        for expected in UInt64(1)...3 {
            #expect(actions.started.map(\.deliveries.values) == [[expected]])
            actions = machine.on(.finished(actions.started[0].id, .settled))
        }
        #expect(actions.started.map(\.deliveries.values) == [[4, 5, 6]])
    }

    @Test func `a message with many returns is always handled alone`() {
        var machine = fullPrefetchMachine()
        var actions = machine.on(.delivered((1...6).map { delivery($0, redelivered: true, returns: 3) }))
        for expected in UInt64(1)...6 {
            #expect(actions.started.map(\.deliveries.values) == [[expected]])
            actions = machine.on(.finished(actions.started[0].id, .settled))
        }
    }

    @Test func `during an outage no batch starts, and the held batch is retried`() {
        var machine = fullPrefetchMachine()
        let batch = machine.on(.delivered((1...3).map { delivery($0) })).started[0]
        let held = machine.on(.finished(batch.id, .held(batch, by: "Postgres")))
        #expect(held.retriesAfterFailures == [1])
        #expect(machine.outage == "Postgres")
        #expect(machine.on(.delivered((4...6).map { delivery($0) })).started.isEmpty)
        let again = machine.on(.retryDue(batch.id)).started
        #expect(again.map(\.deliveries.values) == [[1, 2, 3]])
        #expect(machine.on(.finished(batch.id, .held(again[0], by: "Postgres"))).retriesAfterFailures == [2])
        _ = machine.on(.retryDue(batch.id))
        #expect(machine.on(.finished(batch.id, .settled)).started.map(\.deliveries.values) == [[4, 5, 6]])
        #expect(machine.outage == nil)
    }

    @Test func `after a held batch succeeds the others are retried at once`() {
        var machine = fullPrefetchMachine()
        let both = machine.on(.delivered((1...6).map { delivery($0) })).started
        for batch in both { _ = machine.on(.finished(batch.id, .held(batch, by: "Postgres"))) }
        _ = machine.on(.retryDue(both[0].id))
        #expect(machine.on(.finished(both[0].id, .settled)).started.map(\.id) == [both[1].id])
        #expect(machine.on(.retryDue(both[1].id)).started.isEmpty)
    }

    @Test func `ten reconnects during an outage hold each message once`() {
        var machine = fullPrefetchMachine(StagePolicy(batchSize: 3, prefetch: 9, concurrentBatches: 2, eagerBatches: 0))
        func hold(_ batches: [Batch]) {
            for batch in batches { _ = machine.on(.finished(batch.id, .held(batch, by: "Postgres"))) }
        }
        hold(machine.on(.delivered((1...9).map { delivery($0) })).started)
        for generation in UInt64(2)...11 {
            let again = (1...9).map { delivery($0, redelivered: true, generation: generation) }
            hold(machine.on(.delivered(again)).started)
        }
        var handled: [AMQPDeliveryTag] = []
        var started = machine.on(.retryDue(2)).started
        for id in 0..<200 where started.isEmpty { started = machine.on(.retryDue(id)).started }
        while let batch = started.first {
            handled += batch.deliveries.map(\.tag)
            started += machine.on(.finished(batch.id, .settled)).started
            started.removeFirst()
        }
        #expect(handled.map(\.value).sorted() == Array(1...9))
        #expect(handled.allSatisfy { $0.generation == 11 })
        #expect(machine.inFlight == 0)
    }

    @Test func `a batch of a lost connection is dropped on an outage`() {
        var machine = fullPrefetchMachine()
        let batch = machine.on(.delivered((1...3).map { delivery($0) })).started[0]
        let started = machine.on(.delivered((1...3).map { delivery($0, generation: 2) })).started
        #expect(started.map(\.deliveries.values) == [[1, 2, 3]])
        #expect(machine.on(.finished(batch.id, .held(batch, by: "Postgres"))).retriesAfterFailures.isEmpty)
        #expect(machine.outage == "Postgres")
        // A late delivery of the old connection is dropped.
        #expect(machine.on(.delivered([delivery(4)])).started.isEmpty)
        _ = machine.on(.finished(started[0].id, .settled))
        #expect(machine.inFlight == 0)
    }

    @Test func `waiting deliveries are requeued after the hold limit`() {
        var machine = fullPrefetchMachine()
        let started = machine.on(.delivered((1...6).map { delivery($0) })).started
        let held = machine.on(.finished(started[0].id, .held(started[0], by: "Postgres")))
        #expect(held.armsHold)
        #expect(machine.on(.delivered([delivery(7)])).armsHold == false)
        #expect(machine.on(.holdTimePassed).requeued.isEmpty)
        _ = machine.on(.delivered([delivery(8)]))
        let passed = machine.on(.holdTimePassed)
        #expect(passed.requeued == [7, 1, 2, 3])
        #expect(passed.armsHold)
        #expect(machine.inFlight == 3)
        #expect(machine.on(.lingerElapsed).started.map(\.deliveries.values) == [[8]])
    }

    @Test func `deliveries kept by a pause move to a retry level after the hold limit`() {
        var machine = fullPrefetchMachine(
            StagePolicy(batchSize: 3, prefetch: 10, concurrentBatches: 2, eagerBatches: 0))
        _ = machine.on(.delivered([delivery(2), delivery(1, redelivered: true, returns: 2)]))
        _ = machine.on(.pause)
        #expect(machine.on(.subscriptionEnded).requeued == [2])
        #expect(machine.on(.holdTimePassed).started.isEmpty)
        let aside = machine.on(.holdTimePassed).started
        #expect(aside.map(\.purpose) == [.movingToRetryLevel] && aside.map(\.deliveries.values) == [[1]])
    }

    @Test(arguments: [QueueStateMachine.Event.pause, .drain])
    func `a message near the delivery limit moves to a retry level`(event: QueueStateMachine.Event) {
        var machine = fullPrefetchMachine(
            StagePolicy(batchSize: 3, prefetch: 10, concurrentBatches: 2, eagerBatches: 0))
        let limit = Topology.deliveryLimit / 2
        let deliveries = [delivery(1), delivery(2, redelivered: true, returns: limit)]
        _ = machine.on(.delivered(deliveries))
        #expect(machine.on(event).started.isEmpty)
        let stopped = machine.on(.subscriptionEnded)
        #expect(stopped.requeued == [1])
        // A pause keeps it first.
        guard case .drain = event else { return }
        #expect(stopped.started.map(\.purpose) == [.movingToRetryLevel])
        #expect(!machine.isFinished)
        _ = machine.on(.finished(stopped.started[0].id, .settled))
        #expect(machine.isFinished)
    }

    @Test func `a message that failed alone is a batch of its own on its next attempt`() {
        var machine = fullPrefetchMachine(StagePolicy(batchSize: 10, prefetch: 10, concurrentBatches: 9))
        let failed = delivery(
            3, exchange: "return", properties: AMQPProperties(headers: [HeaderName.failedAlone: .bool(true)]))
        let forged = delivery(5, properties: AMQPProperties(headers: [HeaderName.failedAlone: .bool(true)]))
        let started = machine.on(.delivered([delivery(1), delivery(2), failed, delivery(4), forged])).started
        #expect(started.map(\.deliveries.values) == [[1, 2], [3]])
        #expect(machine.on(.lingerElapsed).started.map(\.deliveries.values) == [[4, 5]])
    }

    @Test(arguments: [QueueStateMachine.Event.pause, .drain])
    func `stopping requeues waiting, held and late deliveries at the end of the consumer`(
        event: QueueStateMachine.Event
    ) {
        var machine = fullPrefetchMachine()
        let started = machine.on(.delivered((1...7).map { delivery($0) })).started
        _ = machine.on(.finished(started[1].id, .held(started[1], by: "Postgres")))
        let stopped = machine.on(event)
        #expect(stopped.unsubscribes)
        #expect(stopped.requeued.isEmpty)
        // The broker delivers further messages until it has cancelled the consumer.
        #expect(machine.on(.delivered([delivery(8)])).requeued.isEmpty)
        #expect(machine.on(.subscriptionEnded).requeued == [7, 4, 5, 6, 8])
        #expect(!machine.isFinished)
        #expect(machine.on(.finished(started[0].id, .held(started[0], by: "Postgres"))).requeued == [1, 2, 3])
    }

    @Test func `pauses never isolate a message permanently`() {
        var machine = fullPrefetchMachine(
            StagePolicy(batchSize: 3, prefetch: 10, concurrentBatches: 2, eagerBatches: 0))
        let deliveries =
            [delivery(1), delivery(2, redelivered: true, returns: 1)]
            + (3...4).map { delivery($0, redelivered: true, returns: PoisonMessageIsolation.maximumRedeliveries - 1) }
        _ = machine.on(.delivered(deliveries))
        #expect(machine.on(.pause).unsubscribes)
        #expect(machine.on(.pause).isEmpty)
        let late = [
            delivery(5), delivery(6, redelivered: true, returns: PoisonMessageIsolation.maximumRedeliveries - 1),
        ]
        _ = machine.on(.delivered(late))
        #expect(machine.on(.subscriptionEnded).requeued == [1, 2, 5])
        // They are handled after a resume, and requeued by a drain.
        var drained = machine
        #expect(drained.on(.drain).requeued == [3, 4, 6])
        #expect(drained.isFinished)
        var actions = machine.on(.resume)
        for expected in UInt64(3)...4 {
            #expect(actions.started.map(\.deliveries.values) == [[expected]])
            actions = machine.on(.finished(actions.started[0].id, .settled))
        }
    }

    @Test func `a drain ends with the consumer and the last batch`() {
        var machine = fullPrefetchMachine()
        let batch = machine.on(.delivered((1...3).map { delivery($0) })).started[0]
        _ = machine.on(.drain)
        _ = machine.on(.subscriptionEnded)
        #expect(!machine.isFinished)
        _ = machine.on(.finished(batch.id, .settled))
        #expect(machine.isFinished)
    }

    @Test func `a paused queue resumes, also while its consumer is being cancelled`() {
        var machine = fullPrefetchMachine()
        _ = machine.on(.pause)
        #expect(machine.on(.resume).prefetches.isEmpty)
        #expect(machine.on(.subscriptionEnded).prefetches == [10])
        _ = machine.on(.pause)
        #expect(machine.on(.subscriptionEnded).prefetches.isEmpty)
        #expect(machine.hasNoConsumer)
        #expect(machine.on(.resume).prefetches == [10])
    }

    @Test func `deliveries of a queue that resumes before the end of its consumer are handled, not requeued`() {
        var machine = fullPrefetchMachine()
        let started = machine.on(.delivered((1...9).map { delivery($0) })).started
        _ = machine.on(.pause)
        #expect(machine.on(.resume).started.isEmpty)
        let ended = machine.on(.subscriptionEnded)
        #expect(ended.prefetches == [10] && ended.requeued.isEmpty)
        #expect(machine.on(.finished(started[0].id, .settled)).started.map(\.deliveries.values) == [[7, 8, 9]])
    }

    @Test func `deliveries of a lost connection are not requeued at the end of the consumer`() {
        var machine = fullPrefetchMachine()
        _ = machine.on(.delivered((1...9).map { delivery($0) }))
        _ = machine.on(.drain)
        _ = machine.on(.delivered([delivery(1, redelivered: true, generation: 2)]))
        #expect(machine.on(.subscriptionEnded).requeued == [1])
    }

    @Test func `an unrequested end of the subscription ends the queue`() {
        var machine = fullPrefetchMachine()
        let actions = machine.on(.subscriptionEnded)
        #expect(actions.contains { if case .reportSubscriptionLost = $0 { true } else { false } })
        #expect(machine.isFinished)
    }
}

extension [QueueStateMachine.Action] {
    fileprivate var started: [Batch] { compactMap { if case .start(let batch) = $0 { batch } else { nil } } }
    fileprivate var prefetches: [UInt16] { compactMap { if case .subscribe(let count) = $0 { count } else { nil } } }
    fileprivate var unsubscribes: Bool { contains { if case .unsubscribe = $0 { true } else { false } } }
    fileprivate var armsHold: Bool { contains { if case .armHoldTimer = $0 { true } else { false } } }
    fileprivate var armsLinger: Bool { contains { if case .armLingerTimer = $0 { true } else { false } } }
    fileprivate var requeued: [UInt64] {
        flatMap { if case .requeue(let tags) = $0 { tags.map(\.value) } else { [] as [UInt64] } }
    }
    fileprivate var retriesAfterFailures: [Int] {
        compactMap { if case .armRetryTimer(_, let failures) = $0 { failures } else { nil } }
    }
}
