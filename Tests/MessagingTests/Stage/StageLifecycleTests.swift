import AMQP
import PushProtocol
import Testing
import TestSupport

@testable import Messaging

/// Start, pause and shutdown of a stage.
@Suite(.timeLimit(.minutes(1))) struct StageLifecycleTests {
    private let bus = InMemoryBus(apps: [demo])

    @Test func `a drain finishes running batches and requeues the others`() async throws {
        let gate = CancellableGate()
        let handler = ScriptedHandler { batch in
            try await gate.pass()
            return batch.map { .done([.notification($0.message)]) }
        }
        for number in 1...50 { bus.event("\(number)") }
        let next = "token-registry.notifications.interactive"
        let stage = Stage(
            service: "rules", queues: [queue], policy: .test(batchSize: 5, concurrentBatches: 2), bus: bus,
            handler: handler, logger: CapturingLogger().logger)
        try await withRunning(stage) { shutDown in
            try await eventually { gate.waiting > 0 && bus.unsettled(in: queue.name) == 21 }
            await shutDown()
            try await eventually { bus.consumers(of: queue.name).isEmpty }
            try await eventually { bus.unsettled(in: queue.name) <= 10 }
            #expect(bus.unsettled(in: queue.name) > 0)
            gate.open()
        }
        #expect(bus.unsettled(in: queue.name) == 0)
        let everything = bus.texts(in: next) + bus.texts(in: queue.name)
        #expect(everything.count == 50)
        #expect(Set(everything) == Set((1...50).map(String.init)))
    }

    @Test func `given a slow cancellation of the consumer, then a drain returns each waiting message once`()
        async throws
    {
        let stuck = CancellableGate()
        let handler = ScriptedHandler { batch in
            try await stuck.pass()
            return batch.map { _ in .done }
        }
        for number in 1...40 { bus.event("\(number)") }
        let slow = SlowCancelBus(bus)
        let stage = Stage(
            service: "rules", queues: [queue], policy: .test(batchSize: 1, concurrentBatches: 1), bus: slow,
            handler: handler, logger: CapturingLogger().logger)
        try await withRunning(stage) { shutDown in
            // One message of the first consumer, and the prefetch of the second.
            try await eventually { stuck.waiting == 1 && bus.unsettled(in: queue.name) == 21 }
            slow.hold()
            await shutDown()
            try await eventually { stage.status.first?.state == .draining }
            #expect(bus.unsettled(in: queue.name) == 21)
            slow.open()
            stuck.open()
        }
        let next = ScriptedHandler()
        try await withStage(bus, next) { _ in
            try await eventually { bus.isSettled(queue.name) && next.handled.count == 39 }
        }
        #expect(next.handled.allSatisfy { $0.inbound.delivery.deliveryCount <= 1 })
    }

    @Test func `a hanging handler is cancelled at the drain deadline and its messages are requeued`() async throws {
        let gate = CancellableGate()
        let handler = ScriptedHandler { batch in
            try await gate.pass()
            return batch.map { _ in .done }
        }
        try await withStage(bus, handler, policy: .test(drainDeadline: .milliseconds(20))) { _ in
            bus.event("a")
            try await eventually { gate.waiting == 1 }
        }
        #expect(bus.texts(in: queue.name) == ["a"])
        #expect(bus.messages(in: "retry.5s").isEmpty)
    }

    @Test func `a drain does not wait for the end of an outage`() async throws {
        let handler = ScriptedHandler { _ in throw Outage("the dependency", underlying: Dependency.Unavailable()) }
        let begin = ContinuousClock.now
        try await withStage(bus, handler) { stage in
            for number in 1...30 { bus.event("\(number)") }
            try await eventually { stage.status.first?.state == .holding("the dependency") }
        }
        #expect(begin.duration(to: .now) < .seconds(20))
        #expect(bus.messages(in: queue.name).count == 30)
        #expect(bus.unsettled(in: queue.name) == 0)
    }

    @Test func `a queue's messages are handled on the policy's executor`() async throws {
        let (here, elsewhere) = (WorkQueue.registryNotifications(.interactive), WorkQueue.registryNotifications(.bulk))
        let executor = MarkedExecutor()
        let handler = ScriptedHandler { batch in
            await Task.yield()
            #expect(MarkedExecutor.isCurrent == (batch[0].inbound.queue == here))
            return batch.map { _ in .done }
        }
        let stage = Stage(
            service: "rules", queues: [here, elsewhere],
            policy: {
                var policy = StagePolicy.test()
                policy.executor = $0 == here ? executor : nil
                return policy
            }, bus: bus, handler: handler, logger: CapturingLogger().logger)
        try await withRunning(stage) { _ in
            for lane in Lane.allCases {
                bus.send(to: "notifications", "\(lane).demo", Array("a".utf8))
            }
            try await eventually { handler.handled.count == 2 }
        }
    }

    @Test func `one app's slow batches leave database connections to other apps`() async throws {
        for (connections, queues, most) in [(4, 1, 3), (4, 3, 1), (10, 3, 3), (1, 1, 1), (32, 1, 4)] {
            let policy = StagePolicy.perApp(connections: connections, queues: queues)
            #expect(policy.concurrentBatches == most, "\(connections) connections, \(queues) queues")
        }
        let gate = CancellableGate()
        let (slow, quick) = (WorkQueue.registryNotifications(.bulk), WorkQueue.registryNotifications(.interactive))
        let handler = ScriptedHandler { batch in
            if batch[0].inbound.queue == slow { try await gate.pass() }
            return batch.map { _ in .done }
        }
        var policy = StagePolicy.perApp(connections: 4)
        policy.batchSize = 1
        try await withStage(bus, handler, queues: [slow, quick], policy: policy) { _ in
            for number in 1...20 { bus.send(to: "notifications", "bulk.demo", Array("\(number)".utf8)) }
            try await eventually { gate.waiting == 3 }
            for number in 1...20 { bus.send(to: "notifications", "interactive.demo", Array("\(number)".utf8)) }
            try await eventually { bus.isSettled(quick.name) }
            #expect(gate.waiting == 3)
            gate.open()
            try await eventually { bus.isSettled(slow.name) }
        }
    }

    @Test func `a stuck lane does not affect another`() async throws {
        let interactive = WorkQueue.registryNotifications(.interactive)
        let bulk = WorkQueue.registryNotifications(.bulk)
        let gate = CancellableGate()
        let handler = ScriptedHandler { batch in
            if batch[0].inbound.queue == bulk { try await gate.pass() }
            return batch.map { _ in .done }
        }
        try await withStage(bus, handler, queues: [interactive, bulk]) { _ in
            for number in 1...100 { bus.send(to: "notifications", "bulk.demo", Array("\(number)".utf8)) }
            try await eventually { gate.waiting > 0 }
            for number in 1...100 { bus.send(to: "notifications", "interactive.demo", Array("\(number)".utf8)) }
            try await eventually { bus.isSettled(interactive.name) }
            #expect(!bus.isSettled(bulk.name))
            gate.open()
            try await eventually { bus.isSettled(bulk.name) }
        }
    }

    @Test func `a paused queue has no consumer and resumes with its messages`() async throws {
        let handler = ScriptedHandler()
        try await withStage(bus, handler) { stage in
            bus.event("before")
            try await eventually { bus.isSettled(queue.name) && handler.handled.count == 1 }
            await stage.pause(queue)
            #expect(bus.consumers(of: queue.name).isEmpty)
            #expect(stage.status.first?.state == .paused)
            bus.event("meanwhile")
            #expect(bus.texts(in: queue.name) == ["meanwhile"])
            await stage.resume(queue)
            try await eventually { bus.isSettled(queue.name) && handler.handled.count == 2 }
        }
    }

    @Test func `a handler may pause its own queue`() async throws {
        let paused = CancellableGate()
        let reference = PauseCallback()
        let handler = ScriptedHandler { batch in
            await reference.pause()
            paused.open()
            throw Outage("the credential", underlying: Dependency.Unavailable())
        }
        try await withStage(bus, handler) { stage in
            reference.set { await stage.pause(queue) }
            bus.event("a")
            try await paused.pass()
            try await eventually { bus.texts(in: queue.name) == ["a"] && bus.unsettled(in: queue.name) == 0 }
        }
    }

    @Test func `verdicts returned at the drain deadline are executed`() async throws {
        let stuck = CancellableGate()
        let handler = ScriptedHandler { batch in
            // Interrupted only by the deadline.
            try? await stuck.pass()
            return batch.map { _ in .done }
        }
        let stage = Stage(
            service: "rules", queues: [queue], policy: .test(drainDeadline: .milliseconds(10)), bus: bus,
            handler: handler, logger: CapturingLogger().logger)
        try await withRunning(stage) { shutDown in
            bus.event("a")
            try await eventually { stuck.waiting == 1 }
            await shutDown()
        }
        #expect(bus.isSettled(queue.name))
    }

    @Test func `pausing an unconsumed queue returns`() async throws {
        let stage = Stage(
            service: "rules", queues: [queue], policy: .test(), bus: bus, handler: ScriptedHandler(),
            logger: CapturingLogger().logger)
        await stage.pause(.rulesOutcomes)
        try await withRunning(stage) { shutDown in
            try await eventually { stage.status.first?.state == .consuming }
            await shutDown()
        }
        await stage.pause(queue)
    }

    @Test func `a pause during the end of the stage returns`() async throws {
        for _ in 0..<100 {
            let stage = Stage(
                service: "rules", queues: [queue], policy: .test(), bus: bus, handler: ScriptedHandler(),
                logger: CapturingLogger().logger)
            // Paused, so that the worker ends with the drain alone.
            await stage.pause(queue)
            try await withRunning(stage) { shutDown in
                try await eventually { stage.status.first?.state == .paused }
                async let end: Void = shutDown()
                while stage.status.first?.state == .paused { await stage.pause(queue) }
                await end
            }
        }
    }

    @Test func `a queue may be paused before the stage runs`() async throws {
        let stage = Stage(
            service: "rules", queues: [queue], policy: .test(), bus: bus, handler: ScriptedHandler(),
            logger: CapturingLogger().logger)
        await stage.pause(queue)
        bus.event("a")
        try await withRunning(stage) { _ in
            try await eventually { stage.status.first?.state == .paused && bus.consumers(of: queue.name).isEmpty }
            await stage.resume(queue)
            try await eventually { bus.isSettled(queue.name) }
        }
    }

    @Test func `an added queue is consumed without a restart`() async throws {
        let late = WorkQueue.rulesOutcomes
        let handler = ScriptedHandler()
        bus.send(to: "outcomes", "apns.accepted", Array("a".utf8))
        try await withStage(bus, handler) { stage in
            stage.consume(late)
            stage.consume(late)
            try await eventually { bus.isSettled(late.name) && handler.handled.count == 1 }
            // One consumer at the end: raising the prefetch replaces the first.
            try await eventually { bus.consumers(of: late.name).count == 1 }
        }
    }

    @Test func `connection losses cause duplicates and lose no message`() async throws {
        let handler = ScriptedHandler { $0.map { .done([.notification($0.message)]) } }
        try await withStage(bus, handler) { _ in
            for number in 1...200 {
                bus.event("\(number)")
                if number.isMultiple(of: 20) { bus.loseConnection() }
            }
            try await eventually { bus.isSettled(queue.name) }
        }
        let arrived = bus.texts(in: "token-registry.notifications.interactive")
        #expect(Set(arrived) == Set((1...200).map(String.init)))
    }

    @Test func `a stage returns when its bus closes`() async throws {
        let stage = Stage(
            service: "rules", queues: [queue, .rulesOutcomes], policy: .test(), bus: bus, handler: ScriptedHandler(),
            logger: CapturingLogger().logger)
        async let running: Void = stage.run()
        try await eventually { bus.consumers(of: queue.name).count == 1 }
        bus.close()
        try await running
    }
}
