import FoundationEssentials
import Messaging
import Postgres
import PushProtocol
import Testing
import TestSupport

@testable import Feedback
@testable import FeedbackStore

/// Tests the deletion of evidence about erased users.
@Suite(.timeLimit(.minutes(4))) struct ErasureTests {
    private static let gone = Outcome.Answer.unregistered(since: nil, reason: "Unregistered")

    private static func erasure(_ device: Int, revokes: Timestamp = Batches.registered) -> ErasureStore.Erasure {
        ErasureStore.Erasure(device: Batches.device(device), revokes: revokes, at: .start)
    }

    private static func devices(_ feedback: FeedbackFixture) async throws -> Set<UUID> {
        var devices: Set<UUID> = []
        for row in try await feedback.pool.query("SELECT device_id FROM feedback.evidence") {
            devices.insert(try row.decode(UUID.self, at: 0))
        }
        return devices
    }

    @Test func `evidence with any decision is deleted, and later evidence is not stored`() async throws {
        try await FeedbackFixture.with { feedback in
            let decisions = ["stale", "waiting", "kept", "quarantined", "discarded", "approved", "published"]
            for (number, decision) in decisions.enumerated() {
                let batch = Batches.batch(Self.gone, devices: [1, 2], notification: number, answered: 100)
                try await feedback.evidence.record([batch])
                try await feedback.pool.execute(
                    """
                    UPDATE feedback.evidence SET decision = \(decision)
                    WHERE notification_id = \(Batches.notification(number))
                    """)
            }
            let store = ErasureStore(feedback.pool)
            #expect(try await store.erase([Self.erasure(1), Self.erasure(1)]) == decisions.count)
            #expect(try await store.erase([Self.erasure(1)]) == 0)
            #expect(try await Self.devices(feedback) == [Batches.device(2)])

            try await feedback.evidence.record([
                Batches.batch(Self.gone, devices: [1, 2], notification: 100, answered: 100),
                // Without a registration time, the time of the observation counts.
                Batches.batch(Self.gone, devices: [1], notification: 101, registeredAt: nil, answered: 100),
            ])
            #expect(try await Self.devices(feedback) == [Batches.device(2)])
        }
    }

    @Test func `evidence about a later registration of the device stays`() async throws {
        try await FeedbackFixture.with { feedback in
            let later = Batches.registered + .milliseconds(1)
            func record(_ notification: Int, at: Timestamp = .start, registeredAt: Timestamp?) async throws {
                try await feedback.evidence.record([
                    Batches.batch(
                        Self.gone, devices: [1], notification: notification, at: at, registeredAt: registeredAt,
                        answered: 100)
                ])
            }
            try await record(1, registeredAt: Batches.registered)
            try await record(2, registeredAt: later)
            let store = ErasureStore(feedback.pool)
            #expect(try await store.erase([Self.erasure(1)]) == 1)
            try await record(3, registeredAt: later)
            try await record(4, at: .start + .milliseconds(1), registeredAt: nil)
            #expect(try await feedback.decisions().values.reduce(0, +) == 3)
            // A repeated earlier erasure does not shorten the later one.
            try await store.erase([Self.erasure(1, revokes: later)])
            try await store.erase([Self.erasure(1)])
            try await record(5, registeredAt: later)
            #expect(try await feedback.decisions().values.reduce(0, +) == 1)
        }
    }

    @Test func `concurrent evidence is deleted or not stored`() async throws {
        try await FeedbackFixture.with { feedback in
            let store = ErasureStore(feedback.pool)
            for round in 0..<15 {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<6 {
                        group.addTask {
                            try await feedback.evidence.record([
                                Batches.batch(
                                    Self.gone, devices: [round, 1000], notification: round * 10 + number, answered: 9)
                            ])
                        }
                    }
                    group.addTask { try await store.erase([Self.erasure(round)]) }
                    try await group.waitForAll()
                }
            }
            #expect(try await Self.devices(feedback) == [Batches.device(1000)])
            #expect(try await feedback.decisions() == ["waiting": 90])
        }
    }

    @Test func `erasure events of the registry delete evidence, and other events do not`() async throws {
        try await FeedbackFixture.with { feedback in
            let batch = Batches.batch(Self.gone, devices: [1, 2, 3, 4], answered: 100)
            try await feedback.evidence.record([batch])
            let handler = ErasureHandler(store: ErasureStore(feedback.pool))
            func event(_ change: DeviceEvent.Change, _ device: Int?, revokes: Timestamp? = nil) throws -> Delivery<
                DeviceEvent
            > {
                let event = DeviceEvent(
                    trace: Trace(id: UUID(), correlation: "c", causation: "c"), app: Batches.app, change: change,
                    user: UserID(rawValue: "7")!,
                    device: device.map {
                        DeviceEvent.Device(
                            id: Batches.device($0), provider: .apns, environment: .production, kind: .alert,
                            active: false)
                    }, at: .start, revokes: revokes)
                let inbound = Inbound(
                    queue: .feedbackErasures, exchange: "devices", routingKey: event.routingKey,
                    body: try event.wireBody())
                return Delivery(inbound: inbound, message: try handler.decode(inbound))
            }
            let verdicts = try await handler.handle([
                event(.erased, 1, revokes: Batches.registered), event(.erased, 2), event(.signedOut, 3),
                event(.userErased, nil),
            ])
            #expect(verdicts.map(\.disposition) == [.done, .done, .done, .done])
            #expect(try await Self.devices(feedback) == [Batches.device(3), Batches.device(4)])
        }
    }

    @Test func `erasures are deleted after their retention, and evidence is found by an index`() async throws {
        try await FeedbackFixture.with { feedback in
            try await ErasureStore(feedback.pool).erase([Self.erasure(1)])
            func count() async throws -> Int {
                try await feedback.pool.query("SELECT count(*) FROM feedback.erasure").single()
            }
            try await feedback.evaluation.deleteErasures(before: .now + .seconds(-60))
            #expect(try await count() == 1)
            try await feedback.evaluation.deleteErasures(before: .now + .seconds(60))
            #expect(try await count() == 0)

            try await feedback.pool.execute(
                """
                INSERT INTO feedback.evidence
                    (notification_id, device_id, app, provider, environment, finding, reason, observed_at)
                SELECT gen_random_uuid(), gen_random_uuid(), 'family-portal', 'apns', 'production', 'gone', 'x', now()
                FROM generate_series(1, 20000) AS n
                """)
            try await feedback.pool.execute("ANALYZE feedback.evidence")
            let plan = try await feedback.pool.query("EXPLAIN \(ErasureStore.deletion([Self.erasure(1)]))")
                .map { try $0.decode(String.self, at: 0) }.joined(separator: "\n")
            #expect(plan.contains("evidence_of_device"), "\(plan)")
        }
    }

    @Test func `the service's database role has the required privileges`() async throws {
        try await FeedbackFixture.with { feedback in
            for right in ["SELECT", "INSERT", "UPDATE", "DELETE"] {
                let may = try await feedback.pool.query(
                    "SELECT has_table_privilege('heliograph_feedback', 'feedback.erasure', \(right))"
                ).single(Bool.self)
                #expect(may, "\(right)")
            }
        }
    }
}
