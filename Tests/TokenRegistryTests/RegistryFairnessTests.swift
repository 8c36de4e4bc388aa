import AMQP
import Foundation
import Messaging
import Postgres
import PushProtocol
import ServiceKit
import ServiceLifecycle
import Testing
import TestSupport

@testable import RegistryStore
@testable import TokenRegistry

/// A flood of one app and messages of another in the registry's queues, on a real broker and database.
@Suite(.enabled(if: TestBroker.isAvailable, "needs a broker"), .serialized, .timeLimit(.minutes(4)))
struct RegistryFairnessTests {
    /// Maximum time for a message of a quiet app through the registry while another app floods.
    private static let bound = Duration.seconds(2)
    private static let flood = 20_000
    private static let (loud, quiet) = (AppID(rawValue: "loud")!, AppID(rawValue: "quiet")!)
    private static let apps = [loud, quiet]
    /// The policy of a process with the default pool: an app has three queues in it (`TokenRegistryApp`).
    private static let policy: @Sendable (WorkQueue) -> StagePolicy = {
        $0.app == nil ? StagePolicy() : .perApp(connections: 4, queues: 3)
    }

    /// The registry's parts on the broker.
    private struct Place: Sendable {
        let store: RegistrationStore
        let bus: AMQPBus
        let publisher: AMQPPublisher
        let administrator: AMQPAdministrator
    }

    @Test(arguments: Lane.allCases)
    func `a notification of one app leaves within two seconds while 20,000 of another wait`(_ lane: Lane) async throws {
        try await Self.withPlace { place in
            try await place.store.register(
                (0..<100).map { Self.claim(Self.loud, $0) } + [Self.claim(Self.quiet, 0)])
            let stage = Stage(
                service: "token-registry", queues: WorkQueue.notifications(of: Self.apps), policy: Self.policy,
                bus: place.bus,
                handler: NotificationHandler(
                    store: place.store, campaigns: CampaignStore(place.store.database), apps: ActiveApps(Self.apps)),
                logger: .silent)
            let pushes = WorkQueue.senderPushes(.apns, lane, Self.quiet).name
            try await Self.measure(
                place, [stage], backlog: .registryAppNotifications(lane, Self.loud),
                flood: { try Self.notification(Self.loud, $0, lane) },
                quiet: { try Self.notification(Self.quiet, $0, lane) },
                arrives: { _ in try await place.administrator.get(pushes) != nil })
        }
    }

    /// Its event is also published in that time.
    @Test func `a device of one app is registered within two seconds while 20,000 commands of another wait`()
        async throws
    {
        try await Self.withPlace { place in
            let stage = Stage(
                service: "token-registry", queues: WorkQueue.devices(of: Self.apps), policy: Self.policy,
                bus: place.bus,
                handler: DeviceCommandHandler(store: place.store, apps: ActiveApps(Self.apps), logger: .silent),
                logger: .silent)
            let relay = OutboxRelay(
                service: "token-registry", store: OutboxStore(place.store.database), bus: place.bus, logger: .silent)
            try await Self.measure(
                place, [stage, relay], backlog: .registryAppDevices(Self.loud),
                flood: { try Self.registration(Self.loud, $0) }, quiet: { try Self.registration(Self.quiet, $0) },
                arrives: { round in
                    let user = Self.claim(Self.quiet, round).user.rawValue
                    guard try await place.store.tokens(of: user, app: Self.quiet).count == 1 else { return false }
                    let unannounced: Int = try await place.store.database.query(
                        "SELECT count(*) FROM registry.outbox WHERE app = \(Self.quiet.rawValue)"
                    ).single()
                    return unannounced == 0
                })
        }
    }

    /// Publishes the flood, starts the services, and measures five messages of the quiet app in sequence.
    private static func measure(
        _ place: Place, _ services: [any Service], backlog: WorkQueue, flood message: (Int) throws -> AMQPMessage,
        quiet: @escaping @Sendable (Int) throws -> AMQPMessage,
        arrives: @escaping @Sendable (Int) async throws -> Bool
    ) async throws {
        for start in stride(from: 0, to: flood, by: 1000) {
            let answers = try await place.publisher.publish((start..<start + 1000).map(message))
            #expect(answers.allSatisfy { $0 == .confirmed })
        }
        try await withServices(services) {
            @Sendable func left() async throws -> Int {
                try await place.administrator.queueStatus(backlog.name)?.messages ?? 0
            }
            try await eventually("the flood is being handled") { try await left() < flood - 400 }
            var slowest = Duration.zero
            for round in 0..<5 {
                let start = ContinuousClock.now
                #expect(try await place.publisher.publish([quiet(round)]) == [.confirmed])
                try await eventually("the quiet app's message") { try await arrives(round) }
                slowest = max(slowest, start.duration(to: .now))
            }
            let waiting = try await left()
            print("RegistryFairnessTests: \(backlog.name): the slowest of five took \(slowest), with \(waiting) left")
            #expect(slowest < bound)
            #expect(waiting > flood / 2)
        }
    }

    private static func withPlace(_ body: @Sendable (Place) async throws -> Void) async throws {
        try await StoreFixture.withStore { store, _ in
            try await TestBroker.withVirtualHost { url in
                let configuration = try AMQPConfiguration(url: url, connectionName: "fairness tests")
                try await AMQPAdministrator.with(configuration, logger: .silent) { administrator in
                    try await Topology(apps: apps).apply(using: administrator)
                    let publisher = AMQPPublisher(configuration: configuration, logger: .silent)
                    let consumer = AMQPConsumer(configuration: configuration, logger: .silent)
                    try await withServices([publisher, consumer]) {
                        try await body(
                            Place(
                                store: store, bus: AMQPBus(publisher: publisher, consumer: consumer),
                                publisher: publisher, administrator: administrator))
                    }
                }
            }
        }
    }

    private static func claim(_ app: AppID, _ number: Int) -> RegistrationRequest {
        StoreFixture.claim("user-\(number)", String(format: "%08x", number + 1), app: app)
    }

    private static func trace(_ app: AppID, _ number: Int) -> Trace {
        Trace(id: DerivedID.uuid5(DerivedID.namespace, [app.rawValue, "\(number)"]), correlation: "e", causation: "e")
    }

    /// A notification to one of a hundred users, each with a device.
    private static func notification(_ app: AppID, _ number: Int, _ lane: Lane) throws -> AMQPMessage {
        let trace = trace(app, number)
        let user = app == loud ? number % 100 : 0
        let notification = PushProtocol.Notification(
            trace: trace, app: app, rule: "r", lane: lane, content: Content(body: "hi"),
            recipients: [.init(user: claim(app, user).user, notification: trace.id)])
        return try Outbound(notification, to: .notifications, routingKey: RoutingKey.notification(lane, app))
            .message(from: "tests")
    }

    private static func registration(_ app: AppID, _ number: Int) throws -> AMQPMessage {
        let claim = claim(app, number)
        let command = DeviceCommand(
            trace: trace(app, number), app: app,
            command: .register(
                RegistrationPayload(
                    user: claim.user, provider: claim.provider, environment: claim.environment, token: claim.token)))
        return try Outbound(command, to: .devices, routingKey: command.routingKey).message(from: "tests")
    }
}
