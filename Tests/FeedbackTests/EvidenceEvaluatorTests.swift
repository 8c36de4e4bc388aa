import AMQP
import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import Feedback

/// Tests the handler and the evaluator together: outcomes in, device commands out.
@Suite(.timeLimit(.minutes(3))) struct EvidenceEvaluatorTests {
    private static let gone = Outcome.Answer.unregistered(since: nil, reason: "Unregistered")

    private struct World {
        let bus = InMemoryBus(apps: [Batches.app])
        let log = CapturingLogger()
        let evaluator: EvidenceEvaluator
        let handler: OutcomeHandler

        init(_ feedback: FeedbackFixture) {
            handler = OutcomeHandler(store: feedback.evidence)
            evaluator = EvidenceEvaluator(
                store: feedback.evaluation, retention: .seconds(180 * 86_400),
                publisher: CommandPublisher(
                    service: "feedback", store: feedback.evaluation, bus: bus, now: { feedback.clock.now },
                    logger: log.logger),
                now: { feedback.clock.now }, logger: log.logger)
        }

        func take(_ batch: Outcomes) async throws -> [Outbound] {
            let inbound = Inbound(
                queue: .feedbackOutcomes, exchange: "outcomes", routingKey: "apns.unregistered",
                body: try batch.wireBody(), attempt: 1, firstSeen: .start)
            let verdict = try await handler.handle([
                Delivery(inbound: inbound, message: try handler.decode(inbound))
            ])
            return verdict[0].outbound
        }

        var commands: [DeviceCommand] {
            get throws {
                try bus.messages(in: WorkQueue.registryDevices.name).map { try DeviceCommand.decode(wireBody: $0.body) }
            }
        }
    }

    @Test func `a gone token is deactivated by one command`() async throws {
        try await FeedbackFixture.with { feedback in
            let world = World(feedback)
            #expect(try await world.take(Batches.batch(Self.gone, devices: [1], answered: 100)).isEmpty)
            try await world.evaluator.evaluate()
            #expect(try world.commands.isEmpty)
            feedback.clock.advance(by: .seconds(120))
            try await world.evaluator.evaluate()
            try await world.evaluator.evaluate()
            let commands = try world.commands
            #expect(
                commands.map(\.command) == [
                    .deactivate(
                        device: Batches.device(1), notRegisteredSince: Batches.registered, reason: "Unregistered")
                ])
            #expect(commands.first?.trace.correlation == "event-1")
            #expect(try await feedback.decisions() == ["published": 1])
        }
    }

    @Test func `a command that the broker nacked is published again`() async throws {
        try await FeedbackFixture.with { feedback in
            let world = World(feedback)
            _ = try await world.take(Batches.batch(Self.gone, devices: [1], answered: 100))
            feedback.clock.advance(by: .seconds(120))
            world.bus.answer(publishesTo: .devices, with: [.nacked])
            try await world.evaluator.evaluate()
            #expect(try await feedback.decisions() == ["approved": 1])
            feedback.clock.advance(by: CommandPublisher.lease)
            try await world.evaluator.evaluate()
            #expect(try await feedback.decisions() == ["published": 1])
            #expect(try world.commands.count == 1)
        }
    }

    @Test func `a spike is logged once, and readiness is degraded while it lasts`() async throws {
        try await FeedbackFixture.with { feedback in
            let world = World(feedback)
            #expect(world.evaluator.condition == .holds)
            _ = try await world.take(Batches.batch(Batches.badToken, devices: 0..<30, answered: 100))
            for _ in 0..<3 { try await world.evaluator.evaluate() }
            guard case .degraded(let words) = world.evaluator.condition else {
                Issue.record("not degraded: \(world.evaluator.condition)")
                return
            }
            #expect(words.contains("family-portal/apns/production") && words.contains("pushctl feedback quarantine"))
            #expect(world.log.lines.filter { $0.level == .error }.count == 1)
            #expect(world.log.lines.first { $0.level == .error }?.metadata["refused"] == "30")
            feedback.clock.advance(by: .seconds(900))
            for _ in 0..<2 { try await world.evaluator.evaluate() }
            #expect(world.evaluator.condition == .holds)
            #expect(world.log.lines.filter { $0.level == .notice }.count == 1)
            #expect(try world.commands.isEmpty)
        }
    }

    @Test func `B08: a reported spike quarantines the evidence that arrived before the report`() async throws {
        try await FeedbackFixture.with { feedback in
            let world = World(feedback)
            // Rejections from before the sender detected the spike: too few to trip the guard.
            _ = try await world.take(
                Batches.batch(
                    Batches.badToken, devices: 0..<19, at: .start + .seconds(-20), answered: 100, acceptedAt: .start))
            try await world.evaluator.evaluate()
            #expect(try await feedback.decisions() == ["waiting": 19])
            let storm = RouteHealth.BadTokenSpike(since: .start + .seconds(-60), until: .start)
            #expect(try await world.take(Batches.word(of: storm)).isEmpty)
            for _ in 0..<2 { try await world.evaluator.evaluate() }
            #expect(try await feedback.decisions() == ["quarantined": 19])
            guard case .degraded = world.evaluator.condition else {
                Issue.record("not degraded: \(world.evaluator.condition)")
                return
            }
            let errors = world.log.lines.filter { $0.level == .error }
            #expect(errors.count == 1)
            #expect("\(errors)".contains("A sender reported a bad-token spike"))
            feedback.clock.advance(by: .seconds(900))
            try await world.evaluator.evaluate()
            #expect(world.evaluator.condition == .holds)
            #expect(try world.commands.isEmpty)
        }
    }

    @Test func `old evidence is deleted in batches`() async throws {
        try await FeedbackFixture.with { feedback in
            let world = World(feedback)
            for part in 0..<3 {
                _ = try await world.take(
                    Batches.batch(
                        .unregistered(since: Batches.registered + .seconds(-1), reason: "Unregistered"),
                        devices: part * 400..<(part + 1) * 400, answered: 1000))
            }
            feedback.clock.advance(by: .seconds(180 * 86_400))
            #expect(try await world.evaluator.tidy() == false)
            feedback.clock.advance(by: .milliseconds(1))
            #expect(try await world.evaluator.tidy())
            #expect(try await feedback.decisions() == ["stale": 700])
            #expect(try await world.evaluator.tidy())
            #expect(try await world.evaluator.tidy() == false)
            #expect(try await feedback.decisions() == [:])
        }
    }

    @Test func `a misplaced registration is corrected at once`() async throws {
        try await FeedbackFixture.with { feedback in
            let world = World(feedback)
            let outbound = try await world.take(
                Batches.batch(.accepted(id: nil), devices: [1], elsewhere: .development))
            #expect(outbound.map(\.routingKey) == ["command.correct.\(Batches.app)"])
            #expect(try await feedback.decisions() == ["published": 1])
        }
    }

    @Test func `no log line has a device id`() async throws {
        try await FeedbackFixture.with { feedback in
            let world = World(feedback)
            _ = try await world.take(Batches.batch(Batches.badToken, devices: 0..<30, answered: 100))
            try await world.evaluator.evaluate()
            for device in 0..<30 {
                #expect(!"\(world.log.lines)".contains(Batches.device(device).uuidString))
            }
        }
    }
}
