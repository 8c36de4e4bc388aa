import HTTP2
import Logging
import Messaging
import NIOPosix
import Providers
import PushProtocol
import PushSending
import ServiceKit
import Testing
import TestSupport

@testable import APNsSender

/// The sender without the bus: settings, credentials, HTTP/2, routes and the stage's handler, on a virtual clock.
struct SenderUnderTest: Sendable {
    let time: VirtualTime
    /// Reloads the credential files when a test calls it.
    let watch: CredentialWatcher
    let gateways: APNsGateways
    private let routes: ProviderRoutes
    private let handler: PushStageHandler

    /// Connects to `url` for production, and for the sandbox unless `sandbox` is given.
    init(
        _ catalog: AppCatalog, url: String, sandbox: String? = nil, authorityFile: String, connections: Int = 4,
        time: VirtualTime = .init(movesTimeOfDay: true), revocations: Revocations? = nil, logger: Logger = .silent
    ) async throws {
        self.time = time
        let settings = try Settings.load(
            keys: APNsSettings.keys,
            environment: [
                "APNS_URL": url, "APNS_SANDBOX_URL": sandbox ?? url, "PROVIDER_CA_FILE": authorityFile,
                "APNS_CHANNELS_URL": url, "APNS_CHANNELS_SANDBOX_URL": sandbox ?? url,
                "APNS_CONNECTIONS": String(connections),
            ])
        let gateways = try await APNsGateways(
            apps: catalog, settings: try APNsSettings(settings),
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton, clock: time.clock, logger: logger)
        self.gateways = gateways
        routes = ProviderRoutes(gateways.byRoute, provider: .apns, clock: time.clock, logger: logger)
        for (route, reason) in gateways.unusableRoutes { routes.trip(route, misconfigured: reason) }
        watch = CredentialWatcher(
            { [gateways] in gateways.watchedFiles }, routes: routes, provider: .apns, clock: time.clock, logger: logger)
        handler = PushStageHandler(
            provider: .apns, routes: routes, revocations: revocations, clock: time.clock, logger: logger)
    }

    /// The result of handling one push.
    struct Result: Sendable {
        /// In the order of the targets.
        let outcomes: [Outcome]
        let disposition: Disposition
        let remainder: [Push.Target]?

        var answers: [Outcome.Answer] { outcomes.map(\.answer) }

        /// The delay of a retry that counts as an attempt.
        var retry: Duration? { if case .retry(let wait, _) = disposition { wait } else { nil } }
        /// The delay of a postponement by a paused route, which does not count as an attempt.
        var held: Duration? { if case .postpone(let wait, _) = disposition { wait } else { nil } }
    }

    /// Handles `push` as the `attempt`-th delivery, on the stage's executor.
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

    /// The reason why the app's route is paused.
    func trouble(
        _ app: String = "demo", _ environment: ProviderEnvironment = .production
    ) -> CircuitBreaker.OpenCause? {
        AppID(rawValue: app).flatMap { routes.openCause(of: ProviderRoute(app: $0, environment: environment)) }
    }

    /// The clients of the current credentials.
    var clients: [HTTP2Client] { gateways.clients.compactMap { $0.current() } }

    func stop() async { await ProviderClients({ gateways.clients }, provider: .apns).shutdown() }

    private struct NoVerdict: Error {}
}
