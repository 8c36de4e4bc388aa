import HTTP2
import Logging
import Messaging
import NIOPosix
import PushProtocol
import PushSending
import ServiceKit
import TestSupport
import Testing
@testable import APNsSender

/// The real sender but for the bus: settings, credentials, HTTP/2, lanes and the stage's handler, on a clock that only
/// moves when a test says so.
struct SenderUnderTest: Sendable {
    let time: VirtualTime
    /// Looks at the files of keys and certificates when a test says so.
    let watch: CredentialWatch
    let gateways: APNsGateways
    private let lanes: PushLanes
    private let handler: PushStageHandler

    /// In front of `url`, for both environments.
    init(
        _ catalog: AppCatalog, url: String, sandbox: String? = nil, authorityFile: String, connections: Int = 4,
        time: VirtualTime = .init(), revocations: Revocations? = nil, logger: Logger = .silent
    ) async throws {
        self.time = time
        let settings = try Settings.load(
            keys: APNsSettings.keys,
            environment: [
                "APNS_URL": url, "APNS_SANDBOX_URL": sandbox ?? url, "PROVIDER_CA_FILE": authorityFile,
                "APNS_CONNECTIONS": String(connections),
            ])
        gateways = try await APNsGateways(
            apps: catalog, settings: try APNsSettings(settings),
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton, clock: time.clock, logger: logger)
        lanes = PushLanes(gateways.byLane, provider: .apns, clock: time.clock, logger: logger)
        for (lane, reason) in gateways.unusable { lanes.shut(lane, misconfigured: reason) }
        watch = CredentialWatch(
            gateways.watched, lanes: lanes, provider: .apns, clock: time.clock, logger: logger)
        handler = PushStageHandler(
            provider: .apns, lanes: lanes, revocations: revocations, clock: time.clock, logger: logger)
    }

    /// What became of one push.
    struct Result: Sendable {
        /// In the order of the targets.
        let outcomes: [Outcome]
        let disposition: Disposition
        let remainder: [Push.Target]?

        var answers: [Outcome.Answer] { outcomes.map(\.answer) }

        /// How long the push waits before it comes again, its attempt counted.
        var retry: Duration? { if case .retry(let wait, _) = disposition { wait } else { nil } }
        /// How long it is held by a shut lane, no attempt counted.
        var held: Duration? { if case .postpone(let wait, _) = disposition { wait } else { nil } }
    }

    /// Takes `push` as the bus would bring it for the `attempt`-th time, where the stage would.
    func send(
        _ push: Push, attempt: Int = 1, publishedAt: Timestamp? = nil, redelivered: Bool = false
    ) async throws -> Result {
        let inbound = Inbound(
            queue: .senderPushes(.apns, push.lane, push.app), exchange: ExchangeName.pushes.name,
            routingKey: RoutingKey.push(.apns, push.lane, push.app), timestamp: publishedAt?.seconds,
            body: try push.wireBody(), attempt: attempt, redelivered: redelivered, firstSeen: time.now)
        let delivery = Delivery(inbound: inbound, message: try handler.decode(inbound))
        let executor: any TaskExecutor = try #require(gateways.executors[push.app])
        let verdicts = try await withTaskExecutorPreference(executor) { try await handler.handle([delivery]) }
        guard let verdict = verdicts.first else { throw NoVerdict() }
        let outcomes = try verdict.outbound.flatMap { try Outcomes.decode(wireBody: $0.body).outcomes }
        let places = Dictionary(push.targets.enumerated().map { ($1.device, $0) }) { first, _ in first }
        func place(_ outcome: Outcome) -> Int { outcome.device.flatMap { places[$0] } ?? 0 }
        return Result(
            outcomes: outcomes.sorted { place($0) < place($1) }, disposition: verdict.disposition,
            remainder: try verdict.remainder.map { try Push.decode(wireBody: $0).targets })
    }

    /// What holds the app's lane up.
    func trouble(
        _ app: String = "demo", _ environment: ProviderEnvironment = .production
    ) -> LaneBreaker.Trouble? {
        AppID(rawValue: app).flatMap { lanes.trouble(of: LaneKey(app: $0, environment: environment)) }
    }

    /// Those of the credentials in force.
    var clients: [HTTP2Client] { gateways.clients.compactMap { $0.current() } }

    func stop() async { await ProviderClients(gateways.clients, provider: .apns).shutdown() }

    private struct NoVerdict: Error {}
}
