import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Feedback
@testable import FeedbackStore

/// Tests that one undecodable row of evidence does not stop evaluation and publication.
@Suite(.timeLimit(.minutes(2))) struct RowIsolationTests {
    private static let gone = Outcome.Answer.unregistered(since: nil, reason: "Unregistered")

    /// The column of the other app's row with an unknown value, and the row's decision.
    static let faults = [
        ("finding", "waiting"), ("provider", "waiting"), ("app", "waiting"), ("finding", "approved"),
        ("app", "approved"),
    ]

    @Test func `the list of workers is complete`() throws {
        #expect(try serviceTypes(in: "Services/Feedback") == ["EvidenceEvaluator"])
    }

    @Test(arguments: faults)
    func `undecodable evidence is marked dead, and another app's token is deactivated`(
        column: String, decision: String
    ) async throws {
        try await FeedbackFixture.with { feedback in
            let log = CapturingLogger()
            let bus = InMemoryBus(apps: [Batches.app, Batches.other])
            let evaluator = EvidenceEvaluator(
                store: feedback.evaluation, evidenceRetention: .seconds(180 * 86_400),
                publisher: CommandPublisher(
                    service: "feedback", store: feedback.evaluation, bus: bus, now: { feedback.clock.now },
                    logger: log.logger),
                now: { feedback.clock.now }, logger: log.logger)
            try await feedback.evidence.record([
                Batches.batch(Self.gone, devices: [1], notification: 1, app: Batches.other, answered: 100),
                Batches.batch(Self.gone, devices: [2], notification: 2, answered: 100),
            ])
            try await feedback.pool.execute(
                "ALTER TABLE feedback.evidence DROP CONSTRAINT evidence_finding_check")
            try await feedback.pool.execute(
                """
                UPDATE feedback.evidence SET decision = \(decision),
                    finding = CASE \(column) WHEN 'finding' THEN 'a guess' ELSE finding END,
                    provider = CASE \(column) WHEN 'provider' THEN 'pigeons' ELSE provider END,
                    app = CASE \(column) WHEN 'app' THEN 'no app id' ELSE app END
                WHERE app = \(Batches.other.rawValue)
                """)
            feedback.clock.advance(by: .seconds(120))
            try await evaluator.evaluate()
            try await evaluator.evaluate()

            let commands = try bus.messages(in: WorkQueue.registryDevices.name).map {
                try DeviceCommand.decode(wireBody: $0.body).command
            }
            let expected = DeviceCommand.Command.deactivate(
                device: Batches.device(2), notRegisteredSince: Batches.registered, reason: "Unregistered")
            #expect(commands == [expected])
            let dead = try await feedback.pool.query(
                "SELECT decision, dead_reason FROM feedback.evidence WHERE dead_at IS NOT NULL")
            #expect(dead.count == 1)
            #expect(try dead.first?.decode(String.self, at: 0) == decision)
            #expect(try dead.first?.decode(String.self, at: 1) == "row-unreadable")
            #expect("\(log.lines)".contains("row-unreadable"))
        }
    }

    @Test func `old evidence is deleted although the evaluation of a route fails`()
        async throws
    {
        try await FeedbackFixture.with { feedback in
            let evaluator = EvidenceEvaluator(
                store: feedback.evaluation, evidenceRetention: .seconds(180 * 86_400),
                publisher: CommandPublisher(
                    service: "feedback", store: feedback.evaluation, bus: InMemoryBus(apps: [Batches.app]),
                    now: { feedback.clock.now }, logger: .silent),
                now: { feedback.clock.now }, logger: .silent)
            try await feedback.evidence.record([
                Batches.batch(Self.gone, devices: [1], notification: 1, app: Batches.other, answered: 100),
                Batches.batch(Self.gone, devices: [2], notification: 2, answered: 100),
            ])
            try await feedback.pool.execute(
                """
                UPDATE feedback.evidence SET decision = 'kept', due_at = NULL, decided_at = '2000-01-01'
                WHERE app = \(Batches.app.rawValue)
                """)
            try await feedback.pool.execute("ALTER TABLE feedback.evidence ADD CHECK (decision = 'waiting') NOT VALID")
            feedback.clock.advance(by: .seconds(120))
            await #expect(throws: (any Error).self) { try await evaluator.evaluate() }
            try await withServices([evaluator]) {
                try await eventually("the old evidence is deleted", within: .seconds(20)) {
                    try await feedback.decisions() == ["waiting": 1]
                }
            }
        }
    }
}
