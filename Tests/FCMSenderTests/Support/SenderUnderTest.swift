import HTTP2
import Logging
import Messaging
import NIOPosix
import Providers
import PushProtocol
import PushSending
import ServiceKit
import Synchronization
import Testing
import TestSupport

@testable import FCMSender

/// The sender without the bus: settings, credentials, HTTP/2, routes and the stage's handler, on a virtual clock.
struct SenderUnderTest: Sendable {
    let time: VirtualTime
    let routes: ProviderRoutes
    /// Reloads the account files when a test calls it.
    let watch: CredentialWatcher
    let gateways: FCMGateways
    private let handler: PushStageHandler

    init(
        _ google: SimulatedGoogle, environment: [String: String] = [:], deadline: Duration = .seconds(10),
        time: VirtualTime = .init()
    ) async throws {
        try await self.init(
            url: google.url, authorityFile: google.authorityFile, folder: google.folder, environment: environment,
            deadline: deadline, time: time)
    }

    /// Connects to a server at `url`, which also grants access tokens.
    init(
        url: String, authorityFile: String, folder: CatalogFolder, environment: [String: String] = [:],
        deadline: Duration = .seconds(10), time: VirtualTime = .init(), revocations: Revocations? = nil
    ) async throws {
        self.time = time
        let logger = Logger.silent
        let defaults = [
            "FCM_URL": url, "FCM_TOKEN_URL": "\(url)/token", "PROVIDER_CA_FILE": authorityFile,
        ]
        let settings = try Settings.load(
            keys: FCMSettings.keys, environment: defaults.merging(environment) { $1 })
        let gateways = try await FCMGateways(
            apps: try AppCatalog.load(path: folder.catalogFile), settings: try FCMSettings(settings),
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton, clock: time.clock, deadline: deadline,
            logger: logger)
        self.gateways = gateways
        routes = ProviderRoutes(gateways.byRoute, provider: .fcm, clock: time.clock, logger: logger)
        watch = CredentialWatcher(
            { [gateways] in gateways.watchedFiles }, routes: routes, provider: .fcm, clock: time.clock, logger: logger)
        handler = PushStageHandler(
            provider: .fcm, routes: routes, revocations: revocations, clock: time.clock, logger: logger)
    }

    /// The result of handling one push.
    struct Result: Sendable {
        let outcomes: [Outcome]
        let disposition: Disposition
        /// The remaining targets; `nil` when the push is done, and when none was settled.
        let remainder: [Push.Target]?

        var answers: [Outcome.Answer] { outcomes.map(\.answer) }
        /// The delay before the push is handled again.
        var wait: Duration? {
            switch disposition {
            case .retry(let wait, _), .postpone(let wait, _): wait
            case .done, .deadLetter, .discard: nil
            }
        }
    }

    /// Handles `push` as the `attempt`-th delivery, on the stage's executor. Outcomes are in the order of the
    /// targets.
    func send(_ push: Push, attempt: Int = 1) async throws -> Result {
        let inbound = Inbound(
            queue: .senderPushes(.fcm, push.lane, push.app), exchange: ExchangeName.pushes.name,
            routingKey: RoutingKey.push(.fcm, push.lane, push.app), body: try push.wireBody(), attempt: attempt,
            firstSeen: time.clock.now())
        let delivery = Delivery(inbound: inbound, message: try handler.decode(inbound))
        let executor: any TaskExecutor = try #require(gateways.executors[push.app])
        let verdicts = try await withTaskExecutorPreference(executor) { try await handler.handle([delivery]) }
        guard let verdict = verdicts.first else { throw NoVerdict() }
        let outcomes = try verdict.outbound.flatMap { try Outcomes.decode(wireBody: $0.body).outcomes }
        let places = Dictionary(
            push.targets.enumerated().map { ($1.device, $0) }, uniquingKeysWith: { first, _ in first })
        return Result(
            outcomes: outcomes.sorted { a, b in
                (a.device.flatMap { places[$0] } ?? 0) < (b.device.flatMap { places[$0] } ?? 0)
            }, disposition: verdict.disposition,
            remainder: try verdict.remainder.map { try Push.decode(wireBody: $0).targets })
    }

    var quotas: ProjectQuotas { gateways.quotas }

    /// The reason why targets behind Firebase's own key are paused.
    var thirdPartyOpenCause: CircuitBreaker.OpenCause? {
        routes.thirdPartyOpenCause(of: ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production))
    }

    /// The clients of the accounts.
    var clients: [HTTP2Client] { gateways.clients.compactMap { $0.current() } }

    /// The reason why the app's route is paused.
    var trouble: CircuitBreaker.OpenCause? {
        routes.openCause(of: ProviderRoute(app: AppID(rawValue: "demo")!, environment: .production))
    }

    func stop() async { await ProviderClients({ gateways.clients }, provider: .fcm).shutdown() }

    private struct NoVerdict: Error {}
}
