import AMQP
import Foundation
import Logging
import Messaging
import Postgres
import PushProtocol
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// A process stops between two publishes of a campaign step, or a cursor cannot be handled.
@Suite(.timeLimit(.minutes(4))) struct CampaignCrashTests {
    typealias Fixture = StoreFixture
    typealias A = AudienceFixture
    static let users = 9000

    /// The step at which the process stops.
    enum Point: String, CaseIterable, Sendable {
        case beforePushes, beforeCursor, beforeAcknowledgement
    }

    static let crashes = Point.allCases.flatMap { point in (1...3).map { (point, $0) } }

    @Test(arguments: crashes)
    func `a process that stops in a step skips no device, and a repeat has the same ids`(
        point: Point, step: Int
    ) async throws {
        try await Fixture.withStore { store, pool in
            let bus = InMemoryBus(apps: [Fixture.app])
            try await Self.fill(pool, Self.users, app: Fixture.app)
            try await Self.open(A.notification(.everyone), pool, bus, store)
            let dying = DyingBus(bus, dies: point, atStep: step)
            try await Self.during(Self.runner(pool, dying)) {
                try await eventually("the process stops") { dying.isDead }
            }
            bus.abandonConsumers()
            try await Self.during(Self.runner(pool, bus)) { try await Self.waitForEnd(pool, bus) }

            let pushes = try Self.pushes(bus, Fixture.app)
            var ids: [Copy: Set<UUID>] = [:]
            for push in pushes {
                for target in push.targets {
                    ids[Copy(notification: target.notification, device: target.device), default: []]
                        .insert(push.trace.id)
                }
            }
            #expect(ids.count == Self.users)
            #expect(ids.values.allSatisfy { $0.count == 1 })
            // A step is repeated only if its pushes were published and its cursor not acknowledged.
            let copies = pushes.reduce(0) { $0 + $1.targets.count }
            #expect(copies <= Self.users + CampaignSteps.defaultSize)
            #expect(point != .beforePushes || copies == Self.users)
        }
    }

    @Test func `pushes refused by the broker at first are published again before the cursor moves`() async throws {
        try await Fixture.withStore { store, pool in
            let bus = InMemoryBus(apps: [Fixture.app])
            try await Self.fill(pool, 300, app: Fixture.app)
            try await Self.open(A.notification(.everyone), pool, bus, store)
            bus.answer(publishesTo: .pushes, with: [.nacked])
            try await Self.during(Self.runner(pool, bus)) { try await Self.waitForEnd(pool, bus) }
            let devices = try Self.pushes(bus, Fixture.app).flatMap(\.targets).map(\.device)
            #expect(devices.count == 300 && Set(devices).count == 300)
            let order = bus.published.map(\.exchange)
            #expect(order.lastIndex(of: "pushes")! < order.firstIndex(of: "devices")!)
        }
    }

    @Test func `a cursor that cannot be handled is dead-lettered at once, and other campaigns continue`() async throws {
        let other = AppID(rawValue: "hide-and-seek")!
        try await Fixture.withStore { store, pool in
            let bus = InMemoryBus(apps: [Fixture.app, other])
            for app in [Fixture.app, other] { try await Self.fill(pool, 10, app: app) }
            try await Self.open(A.notification(.everyone), pool, bus, store)
            let second = UUID()
            try await Self.open(A.notification(.everyone, campaign: second, app: other), pool, bus, store)
            let text = try await pool.query(
                "SELECT notification FROM registry.campaign WHERE app = \(Fixture.app.rawValue)"
            ).single(String.self)
            try await Self.store("{}", in: pool)

            try await Self.during(Self.runner(pool, bus)) {
                try await eventually("the other campaign is done") {
                    try await Self.states(pool)[other.rawValue] == "done"
                }
                try await eventually("the cursor is a dead letter") {
                    bus.messages(in: WorkQueue.registryCampaigns.deadName).count == 1
                }
            }
            #expect(try Self.pushes(bus, other).flatMap(\.targets).count == 10)
            let dead = bus.messages(in: WorkQueue.registryCampaigns.deadName)[0]
            #expect(dead.properties.headers["heliograph-reason"] == .text("campaign-step-failed"))
            #expect(bus.messages(in: WorkQueue.registryCampaigns.name).isEmpty)
            #expect(try await Self.deadReasons(pool) == ["campaign-step-failed"])

            // A replayed cursor continues the campaign and removes the mark.
            try await Self.store(text, in: pool)
            bus.send(to: "devices", RoutingKey.campaignCursor, dead.body)
            try await Self.during(Self.runner(pool, bus)) { try await Self.waitForEnd(pool, bus) }
            #expect(try Self.pushes(bus, Fixture.app).flatMap(\.targets).count == 10)
            #expect(try await Self.deadReasons(pool).isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `a cursor with a permanently refused copy halts its campaign, and others continue`(
        isPaused: Bool
    ) async throws {
        let other = AppID(rawValue: "hide-and-seek")!
        try await Fixture.withStore { store, pool in
            let bus = InMemoryBus(apps: [Fixture.app, other])
            for app in [Fixture.app, other] { try await Self.fill(pool, 10, app: app) }
            try await Self.open(A.notification(.everyone), pool, bus, store)
            // As many as there are workers that could be blocked.
            for _ in 0..<CampaignRunner.workers {
                bus.send(to: "devices", RoutingKey.campaignCursor, Array(#"{"app":"family-portal"}"#.utf8))
            }
            if isPaused {
                try await pool.execute("UPDATE registry.campaign SET state = 'paused'")
            } else {
                try await Self.store("{}", in: pool)
            }
            try await Self.open(A.notification(.everyone, campaign: UUID(), app: other), pool, bus, store)
            // The copies for the retry queue and for the dead-letter queue.
            bus.refuse { message in
                message.exchange != ExchangeName.devices.name
                    && String(decoding: message.body, as: UTF8.self).contains(Fixture.app.rawValue)
            }
            let dead = CampaignRunner.workers + 1
            try await Self.during(Self.runner(pool, bus)) {
                try await eventually("the other campaign is done") {
                    try await Self.states(pool)[other.rawValue] == "done"
                }
                try await eventually("the cursors are dead letters") {
                    bus.messages(in: WorkQueue.registryCampaigns.deadName).count == dead
                }
            }
            #expect(try Self.pushes(bus, other).flatMap(\.targets).count == 10)
            #expect(bus.messages(in: WorkQueue.registryCampaigns.name).isEmpty)
            #expect(try await Self.deadReasons(pool) == [isPaused ? "rejected" : "campaign-step-failed"])
            #expect(bus.refusals == dead)
        }
    }

    // MARK: - Helpers

    private struct Copy: Hashable {
        let notification: UUID
        let device: UUID
    }

    private static func runner(_ pool: PostgresPool, _ bus: any MessageBus) -> CampaignRunner {
        CampaignRunner(
            service: "token-registry", store: CampaignStore(pool), bus: bus, depth: { _ in 0 },
            bulkThrottle: BulkThrottle(), logger: .silent)
    }

    private static func during(_ runner: CampaignRunner, _ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await runner.run() }
            try await body()
            group.cancelAll()
        }
    }

    private static func waitForEnd(_ pool: PostgresPool, _ bus: InMemoryBus) async throws {
        try await eventually("every campaign is done", within: .seconds(60)) {
            bus.expireRetries()
            return try await states(pool).values.allSatisfy { $0 == "done" }
        }
    }

    private static func states(_ pool: PostgresPool) async throws -> [String: String] {
        var states: [String: String] = [:]
        for row in try await pool.query("SELECT app, state FROM registry.campaign") {
            states[try row.decode(String.self, at: 0)] = try row.decode(String.self, at: 1)
        }
        return states
    }

    private static func deadReasons(_ pool: PostgresPool) async throws -> [String] {
        var reasons: [String] = []
        for row in try await pool.query(
            "SELECT dead_reason FROM registry.campaign_range WHERE dead_at IS NOT NULL")
        {
            reasons.append(try row.decode(String.self, at: 0))
        }
        return reasons
    }

    private static func store(_ notification: String, in pool: PostgresPool) async throws {
        try await pool.execute(
            "UPDATE registry.campaign SET notification = \(notification) WHERE app = \(Fixture.app.rawValue)")
    }

    private static func fill(_ pool: PostgresPool, _ count: Int, app: AppID) async throws {
        try await pool.execute(
            """
            INSERT INTO registry.registration (device_id, app, user_id, provider, environment, token, registered_at,
                state_changed_at)
            SELECT gen_random_uuid(), \(app.rawValue), 'user-' || n, 'apns', 'production', 'token-' || n, now(), now()
            FROM generate_series(1, \(count)) AS n
            """)
    }

    private static func open(
        _ notification: PushProtocol.Notification, _ pool: PostgresPool, _ bus: InMemoryBus, _ store: RegistrationStore
    ) async throws {
        for cursor in try await CampaignStore(pool).open(notification, to: notification.audience!) {
            bus.send(to: "devices", RoutingKey.campaignCursor, try cursor.wireBody())
        }
    }

    private static func pushes(_ bus: InMemoryBus, _ app: AppID) throws -> [Push] {
        try bus.messages(in: WorkQueue.senderPushes(.apns, .bulk, app).name).map { try Push.decode(wireBody: $0.body) }
    }
}

/// A bus that stops at one point of a step. From then on, nothing reaches the broker.
private final class DyingBus: ForwardingBus {
    let bus: InMemoryBus
    private let point: CampaignCrashTests.Point
    private let step: Int
    private let state = Mutex<(seen: Int, isDead: Bool)>((0, false))

    init(_ bus: InMemoryBus, dies point: CampaignCrashTests.Point, atStep step: Int) {
        self.bus = bus
        self.point = point
        self.step = step
    }

    var isDead: Bool { state.withLock(\.isDead) }

    func acknowledge(_ tags: [AMQPDeliveryTag]) {
        if survives(.beforeAcknowledgement) { bus.acknowledge(tags) }
    }

    func requeue(_ tags: [AMQPDeliveryTag]) {}

    func reject(_ tags: [AMQPDeliveryTag]) {}

    func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation] {
        let isPushes = messages.contains { $0.exchange == ExchangeName.pushes.name }
        guard survives(isPushes ? .beforePushes : .beforeCursor) else {
            throw AMQPError(.closed, operation: "publish", detail: "the process has stopped")
        }
        return try await bus.publish(messages)
    }

    private func survives(_ place: CampaignCrashTests.Point) -> Bool {
        state.withLock { state in
            if !state.isDead, place == point {
                state.seen += 1
                state.isDead = state.seen == step
            }
            return !state.isDead
        }
    }
}
