import HTTP2
import Logging
import Messaging
import NIOPosix
import PushProtocol
import PushSending
import ServiceKit
import Synchronization
import TestSupport
import Testing
@testable import FCMSender

/// The real sender but for the bus: settings, credentials, HTTP/2, lanes and the stage's handler, on a clock that only
/// moves when a test says so.
struct SenderUnderTest: Sendable {
    let time: VirtualTime
    let lanes: PushLanes
    /// Looks at the accounts' files when a test says so.
    let watch: CredentialWatch
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

    /// In front of any server at `url`, which also grants access tokens.
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
        gateways = try await FCMGateways(
            apps: try AppCatalog.load(path: folder.catalogFile), settings: try FCMSettings(settings),
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton, clock: time.clock, deadline: deadline,
            logger: logger)
        lanes = PushLanes(gateways.byLane, provider: .fcm, clock: time.clock, logger: logger)
        watch = CredentialWatch(gateways.watched, lanes: lanes, provider: .fcm, clock: time.clock, logger: logger)
        handler = PushStageHandler(
            provider: .fcm, lanes: lanes, revocations: revocations, clock: time.clock, logger: logger)
    }

    /// What became of one push.
    struct Result: Sendable {
        let outcomes: [Outcome]
        let disposition: Disposition
        /// The targets that are left; none when the push is done, and all of them when nothing was settled.
        let remainder: [Push.Target]?

        var answers: [Outcome.Answer] { outcomes.map(\.answer) }
        /// How long the push waits before it comes again.
        var wait: Duration? {
            switch disposition {
            case .retry(let wait, _), .postpone(let wait, _): wait
            case .done, .deadLetter, .discard: nil
            }
        }
    }

    /// Takes `push` as the bus would bring it for the `attempt`-th time, where the stage would. Outcomes come in the targets' order.
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

    /// The trouble of the app's targets that are reached by another party's key.
    var thirdPartyTrouble: LaneBreaker.Trouble? {
        lanes.thirdPartyTrouble(of: LaneKey(app: AppID(rawValue: "demo")!, environment: .production))
    }

    /// The connections of the accounts.
    var clients: [HTTP2Client] { gateways.clients.compactMap { $0.current() } }

    /// What holds the app's lane up.
    var trouble: LaneBreaker.Trouble? {
        lanes.trouble(of: LaneKey(app: AppID(rawValue: "demo")!, environment: .production))
    }

    func stop() async { await ProviderClients(gateways.clients, provider: .fcm).shutdown() }

    private struct NoVerdict: Error {}
}
