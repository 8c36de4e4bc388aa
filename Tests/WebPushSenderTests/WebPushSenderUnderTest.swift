import Crypto
import Foundation
import HTTP2
import HTTP2Server
import Logging
import Messaging
import NIOPosix
import Providers
import PushProtocol
import PushSending
import ServiceKit
import Testing
import TestSupport

@testable import WebPushSender

/// The sender without the bus: settings, key, HTTP/2, routes and the stage's handler, on a virtual clock.
struct WebPushSenderUnderTest: Sendable {
    let time = VirtualTime()
    let routes: ProviderRoutes
    let gateways: WebPushGateways
    /// Reloads the key file when a test calls it.
    let watch: CredentialWatcher
    let folder: TemporaryFolder
    private let handler: PushStageHandler

    static let app = AppID(rawValue: "demo")!

    /// - Parameter privateNetworks: whether the push services may be on this machine.
    init(privateNetworks: Bool = true, origins: Int = 100, key: String = VAPIDKey().privateKey) async throws {
        folder = try TemporaryFolder()
        try folder.write("demo.vapid", "\(key)\n")
        let catalog = try folder.write(
            "apps.yaml",
            """
            apps:
              demo:
                webpush: { key-file: demo.vapid, subject: "mailto:push@demo.example", home-page: "https://demo.example/" }
            """)
        let settings = try Settings.load(
            keys: WebPushSettings.keys,
            environment: [
                "PROVIDER_CA_FILE": try TestCertificates.shared().authorityFile, "WEBPUSH_ORIGINS": "\(origins)",
                "HELIOGRAPH_WEBPUSH_PRIVATE_NETWORKS": privateNetworks ? "yes" : "no",
            ])
        let gateways = try await WebPushGateways(
            apps: try AppCatalog.load(path: catalog), settings: try WebPushSettings(settings),
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton, clock: time.clock, logger: .silent)
        self.gateways = gateways
        routes = ProviderRoutes(gateways.byRoute, provider: .webpush, clock: time.clock, logger: .silent)
        watch = CredentialWatcher(
            { gateways.watchedFiles }, routes: routes, provider: .webpush, clock: time.clock, logger: .silent)
        handler = PushStageHandler(provider: .webpush, routes: routes, clock: time.clock, logger: .silent)
    }

    var pool: OriginPool { gateways.pools.all[0] }

    /// The reason why the app's route is paused.
    var trouble: CircuitBreaker.OpenCause? {
        routes.openCause(of: ProviderRoute(app: Self.app, environment: .production))
    }

    private static func base64URL(_ bytes: Data) -> String {
        bytes.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// The token of a browser's subscription.
    static func token(_ endpoint: String) throws -> String {
        let json: JSONValue = [
            "endpoint": .string(endpoint),
            "keys": [
                "p256dh": .string(Self.base64URL(P256.KeyAgreement.PrivateKey().publicKey.x963Representation)),
                "auth": .string(Self.base64URL(Data(0..<16))),
            ],
        ]
        return String(decoding: JSONText.bytes(of: json), as: UTF8.self)
    }

    /// Handles a push to browsers with these endpoints.
    ///
    /// - Returns: The answers in the order of the endpoints, `nil` for targets that remain, and the disposition.
    func send(
        to endpoints: [String], content: Content = Content(title: "T"), attempt: Int = 1
    ) async throws -> (answers: [Outcome.Answer?], disposition: Disposition) {
        let push = Push.sample(
            content, provider: .webpush, targets: try endpoints.map { .sample(token: try Self.token($0)) })
        let inbound = Inbound(
            queue: .senderPushes(.webpush, push.lane, push.app), exchange: ExchangeName.pushes.name,
            routingKey: RoutingKey.push(.webpush, push.lane, push.app), body: try push.wireBody(), attempt: attempt,
            firstSeen: time.clock.now())
        let delivery = Delivery(inbound: inbound, message: try handler.decode(inbound))
        let executor: any TaskExecutor = try #require(gateways.executors[push.app])
        let verdicts = try await withTaskExecutorPreference(executor) { try await handler.handle([delivery]) }
        let verdict = try #require(verdicts.first)
        let outcomes = try verdict.outbound.flatMap { try Outcomes.decode(wireBody: $0.body).outcomes }
        let answers = push.targets.map { target in outcomes.first { $0.device == target.device }?.answer }
        return (answers, verdict.disposition)
    }

    func stop() async { await pool.shutdown() }

    /// Runs `body` with a sender and push services, which answer as `answer` says.
    static func run(
        services: Int = 1, privateNetworks: Bool = true, origins: Int = 100,
        _ answer: @escaping @Sendable (HTTP2ServerRequest) -> [HTTP2ServerStep],
        _ body: (WebPushSenderUnderTest, [FakeProvider]) async throws -> Void
    ) async throws {
        var servers: [FakeProvider] = []
        for _ in 0..<services { servers.append(try await FakeProvider.start(answer)) }
        let sender = try await WebPushSenderUnderTest(privateNetworks: privateNetworks, origins: origins)
        try await body(sender, servers)
        await sender.stop()
        for server in servers { await server.stop() }
    }
}

extension HTTP2ServerStep {
    static func answer(_ status: Int, _ headers: [(String, String)] = []) -> [HTTP2ServerStep] {
        [.respond(status: status, headers: headers.map { .init(name: $0.0, value: $0.1) }, body: [])]
    }
}
