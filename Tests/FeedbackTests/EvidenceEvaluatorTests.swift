import AMQP
import FoundationEssentials
import Logging
import Messaging
import PushProtocol
import ServiceKit
import Testing
import TestSupport

@testable import Feedback
@testable import FeedbackStore

/// Tests the handler and the evaluator together: outcomes in, device commands out.
@Suite(.timeLimit(.minutes(3))) struct EvidenceEvaluatorTests {
    private static let gone = Outcome.Answer.unregistered(since: nil, reason: "Unregistered")

    private struct Harness {
        let bus = InMemoryBus(apps: [Batches.app])
        let log = CapturingLogger()
        let evaluator: EvidenceEvaluator
        let handler: OutcomeHandler

        init(_ feedback: FeedbackFixture) {
            handler = OutcomeHandler(store: feedback.evidence)
            evaluator = EvidenceEvaluator(
                store: feedback.evaluation, evidenceRetention: .seconds(180 * 86_400),
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
            let harness = Harness(feedback)
            #expect(try await harness.take(Batches.batch(Self.gone, devices: [1], answered: 100)).isEmpty)
            try await harness.evaluator.evaluate()
            #expect(try harness.commands.isEmpty)
            feedback.clock.advance(by: .seconds(120))
            try await harness.evaluator.evaluate()
            try await harness.evaluator.evaluate()
            let commands = try harness.commands
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
            let harness = Harness(feedback)
            _ = try await harness.take(Batches.batch(Self.gone, devices: [1], answered: 100))
            feedback.clock.advance(by: .seconds(120))
            harness.bus.answer(publishesTo: .devices, with: [.nacked])
            try await harness.evaluator.evaluate()
            #expect(try await feedback.decisions() == ["approved": 1])
            feedback.clock.advance(by: CommandPublisher.lease)
            try await harness.evaluator.evaluate()
            #expect(try await feedback.decisions() == ["published": 1])
            #expect(try harness.commands.count == 1)
        }
    }

    @Test func `a spike is logged once, and readiness is degraded while it lasts`() async throws {
        try await FeedbackFixture.with { feedback in
            let harness = Harness(feedback)
            #expect(harness.evaluator.condition == .holds)
            _ = try await harness.take(Batches.batch(Batches.badToken, devices: 0..<30, answered: 100))
            for _ in 0..<3 { try await harness.evaluator.evaluate() }
            guard case .degraded(let words) = harness.evaluator.condition else {
                Issue.record("not degraded: \(harness.evaluator.condition)")
                return
            }
            #expect(words.contains("family-portal/apns/production") && words.contains("pushctl feedback quarantine"))
            #expect(harness.log.lines.filter { $0.level == .error }.count == 1)
            #expect(harness.log.lines.first { $0.level == .error }?.metadata["refused"] == "30")
            feedback.clock.advance(by: .seconds(900))
            for _ in 0..<2 { try await harness.evaluator.evaluate() }
            #expect(harness.evaluator.condition == .holds)
            #expect(harness.log.lines.filter { $0.level == .notice }.count == 1)
            #expect(try harness.commands.isEmpty)
        }
    }

    @Test func `B08: a reported spike quarantines the evidence that arrived before the report`() async throws {
        try await FeedbackFixture.with { feedback in
            let harness = Harness(feedback)
            // Rejections from before the sender detected the spike: too few to trip the guard.
            _ = try await harness.take(
                Batches.batch(
                    Batches.badToken, devices: 0..<19, at: .start + .seconds(-20), answered: 100, acceptedAt: .start))
            try await harness.evaluator.evaluate()
            #expect(try await feedback.decisions() == ["waiting": 19])
            let spike = RouteHealth.BadTokenSpike(since: .start + .seconds(-60), until: .start)
            #expect(try await harness.take(Batches.spikeReport(of: spike)).isEmpty)
            for _ in 0..<2 { try await harness.evaluator.evaluate() }
            #expect(try await feedback.decisions() == ["quarantined": 19])
            guard case .degraded = harness.evaluator.condition else {
                Issue.record("not degraded: \(harness.evaluator.condition)")
                return
            }
            let errors = harness.log.lines.filter { $0.level == .error }
            #expect(errors.count == 1)
            #expect("\(errors)".contains("A sender reported a bad-token spike"))
            feedback.clock.advance(by: .seconds(900))
            try await harness.evaluator.evaluate()
            #expect(harness.evaluator.condition == .holds)
            #expect(try harness.commands.isEmpty)
        }
    }

    @Test func `old evidence is deleted in batches`() async throws {
        try await FeedbackFixture.with { feedback in
            let harness = Harness(feedback)
            for part in 0..<3 {
                _ = try await harness.take(
                    Batches.batch(
                        .unregistered(since: Batches.registered + .seconds(-1), reason: "Unregistered"),
                        devices: part * 400..<(part + 1) * 400, answered: 1000))
            }
            feedback.clock.advance(by: .seconds(180 * 86_400))
            #expect(try await harness.evaluator.deleteOldRows() == false)
            feedback.clock.advance(by: .milliseconds(1))
            #expect(try await harness.evaluator.deleteOldRows())
            #expect(try await feedback.decisions() == ["stale": 700])
            #expect(try await harness.evaluator.deleteOldRows())
            #expect(try await harness.evaluator.deleteOldRows() == false)
            #expect(try await feedback.decisions() == [:])
        }
    }

    @Test func `a misplaced registration is corrected at once`() async throws {
        try await FeedbackFixture.with { feedback in
            let harness = Harness(feedback)
            let outbound = try await harness.take(
                Batches.batch(.accepted(id: nil), devices: [1], elsewhere: .development))
            #expect(outbound.map(\.routingKey) == ["command.correct.\(Batches.app)"])
            #expect(try await feedback.decisions() == ["published": 1])
        }
    }

    @Test func `no log line has a device id`() async throws {
        try await FeedbackFixture.with { feedback in
            let harness = Harness(feedback)
            _ = try await harness.take(Batches.batch(Batches.badToken, devices: 0..<30, answered: 100))
            try await harness.evaluator.evaluate()
            for device in 0..<30 {
                #expect(!"\(harness.log.lines)".contains(Batches.device(device).uuidString))
            }
        }
    }
}
