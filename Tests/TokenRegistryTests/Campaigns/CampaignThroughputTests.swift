import AMQP
import Foundation
import Messaging
import Postgres
import PushProtocol
import ServiceLifecycle
import Synchronization
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// The cost of a campaign step's confirms (decision 89), on a real broker and database.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .timeLimit(.minutes(4)))
struct CampaignThroughputTests {
    typealias Fixture = StoreFixture

    /// Maximum time of a step's publishes relative to plain confirmed publishing of the same pushes, as the median of
    /// all steps. The cursor adds one more wait for the broker, so a busy broker gives 2; a third wait would give 3.
    private static let bound = 2.5
    private static let devices = 100_000
    /// The queue for the cursors of the transactions.
    private static let scratch = "throughput.cursors"

    /// Publishes each step's pushes also alone, and in an AMQP transaction as before decision 89, directly after the
    /// step. The load of other tests then affects all three alike, and a pause of the machine changes few ratios.
    @Test func `a step waits for the broker twice, plain confirmed publishing once`() async throws {
        try await Fixture.withStore { store, pool in
            try await Self.fill(pool)
            try await TestBroker.withVirtualHost { url in
                let configuration = try AMQPConfiguration(url: url, connectionName: "throughput tests")
                try await AMQPAdministrator.with(configuration, logger: .silent) { administrator in
                    try await Topology(apps: [Fixture.app]).apply(using: administrator)
                    try await administrator.declareQueue(name: Self.scratch, arguments: ["x-queue-type": "quorum"])
                    let publisher = AMQPPublisher(configuration: configuration, logger: .silent)
                    let consumer = AMQPConsumer(configuration: configuration, logger: .silent)
                    let bus = MeteredBus(AMQPBus(publisher: publisher, consumer: consumer))
                    let transactionChannel = try AMQPTransactionChannel(configuration, logger: .silent)
                    try await withServices([publisher, consumer]) {
                        let times = try await Self.walk(CampaignStore(pool), bus, publisher, transactionChannel)
                        let sent = try await administrator.queueStatus(
                            WorkQueue.senderPushes(.apns, .bulk, Fixture.app).name)
                        #expect((sent?.messages ?? 0) == 3 * times.pushes)
                        try #require(times.steps >= Self.devices / CampaignSteps.defaultSize)
                        print("CampaignThroughputTests: \(times)")
                        #expect(times.medianRatio < Self.bound)
                    }
                    await transactionChannel.close()
                }
            }
        }
    }

    private struct Times: Sendable, CustomStringConvertible {
        var steps = 0
        var pushes = 0
        /// The time of whole steps, with the database.
        var whole = Duration.zero
        /// The time of the steps' publishes: pushes, then the cursor.
        var confirmed = Duration.zero
        /// The time of the same pushes with confirms.
        var plain = Duration.zero
        /// The time of the same pushes and a cursor in AMQP transactions.
        var transacted = Duration.zero
        /// For each step, `confirmed` relative to `plain`.
        var ratios: [Double] = []

        /// The median of the steps' ratios.
        var medianRatio: Double { ratios.sorted()[ratios.count / 2] }

        var description: String {
            func ms(_ duration: Duration) -> String { String(format: "%.1f ms", duration / .milliseconds(steps)) }
            return """
                \(steps) steps of \(pushes) pushes; a step takes \(ms(whole)), its publishes \(ms(confirmed)), plain confirmed \
                publishing \(ms(plain)) (median ratio \(String(format: "%.2f", medianRatio))), an AMQP transaction \
                \(ms(transacted)) (ratio \(String(format: "%.2f", confirmed / transacted)))
                """
        }
    }

    /// Walks through a campaign to its end, one step after the other.
    private static func walk(
        _ store: CampaignStore, _ bus: MeteredBus, _ publisher: AMQPPublisher,
        _ transactionChannel: AMQPTransactionChannel
    ) async throws -> Times {
        let notification = AudienceFixture.notification(.everyone)
        let cursors = try await store.open(notification, to: try #require(notification.audience))
        let first = try cursors.map {
            try Outbound($0, to: .devices, routingKey: RoutingKey.campaignCursor).message(from: "token-registry")
        }
        let cursor = AMQPMessage(exchange: "", routingKey: scratch, body: first[0].body)
        _ = try await publisher.publish(first + [cursor])
        let runner = CampaignRunner(
            service: "token-registry", store: store, bus: bus, depth: { _ in 0 }, bulkThrottle: BulkThrottle(),
            logger: .silent)
        let subscription = bus.subscribe(queue: WorkQueue.registryCampaigns.name, prefetch: 1)
        var times = Times()
        for await burst in subscription.deliveries {
            for delivery in burst {
                _ = bus.take()
                var begin = ContinuousClock.now
                await runner.handle(delivery)
                let whole = begin.duration(to: .now)
                let (messages, spent) = bus.take()
                let pushes = messages.filter { $0.exchange == ExchangeName.pushes.name }
                guard !pushes.isEmpty else { continue }
                times.steps += 1
                times.pushes += pushes.count
                times.whole += whole
                times.confirmed += spent
                begin = .now
                let answers = try await publisher.publish(pushes)
                let plain = begin.duration(to: .now)
                times.plain += plain
                times.ratios.append(spent / plain)
                #expect(answers.allSatisfy { $0 == .confirmed })
                let taken = try #require(try await transactionChannel.take(from: scratch))
                begin = .now
                let returned = try await transactionChannel.commit(pushes + [cursor], settling: taken)
                times.transacted += begin.duration(to: .now)
                #expect(returned.isEmpty)
            }
            if try await isDone(store) { break }
        }
        await subscription.cancel()
        return times
    }

    private static func isDone(_ store: CampaignStore) async throws -> Bool {
        try await store.database.query("SELECT state FROM registry.campaign").single(String.self) == "done"
    }

    private static func fill(_ pool: PostgresPool) async throws {
        try await pool.execute(
            """
            INSERT INTO registry.registration (device_id, app, user_id, provider, environment, token, registered_at,
                state_changed_at)
            SELECT gen_random_uuid(), \(Fixture.app.rawValue), 'user-' || n, 'apns', 'production', md5(n::text), now(),
                now()
            FROM generate_series(1, \(devices)) AS n
            """)
        try await pool.execute("ANALYZE registry.registration")
    }
}

/// Records published messages and the time that publishing takes.
private final class MeteredBus: ForwardingBus {
    let bus: AMQPBus
    private let published = Mutex<(messages: [AMQPMessage], spent: Duration)>(([], .zero))

    init(_ bus: AMQPBus) { self.bus = bus }

    /// Returns the messages since the last call, and the time of publishing them.
    func take() -> (messages: [AMQPMessage], spent: Duration) {
        published.withLock { published in
            defer { published = ([], .zero) }
            return published
        }
    }

    func publish(_ messages: [AMQPMessage]) async throws(AMQPError) -> [AMQPConfirmation] {
        let begin = ContinuousClock.now
        let answers = try await bus.publish(messages)
        let spent = begin.duration(to: .now)
        published.withLock {
            $0.messages += messages
            $0.spent += spent
        }
        return answers
    }
}
