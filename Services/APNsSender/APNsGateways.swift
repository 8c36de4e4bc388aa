import HTTP2
import Logging
import NIOCore
import Providers
import PushProtocol
import PushSending
import SenderService
import ServiceKit

/// The gateways of all apps to APNs, one for each environment.
///
/// Apple binds a connection to the first key or certificate used on it, and limits the token rate of each key.
/// Therefore apps that share a credential share one client for each host, and one token source for each key.
struct APNsGateways: SenderGateways {
    private(set) var byRoute: [ProviderRoute: ProviderGateway] = [:]
    private(set) var executors: [AppID: any TaskExecutor] = [:]
    private(set) var unusableRoutes: [ProviderRoute: String] = [:]

    /// Management of broadcast channels, with the same keys.
    let channels: ChannelManagement

    private let settings: APNsSettings
    private var loops: EventLoopExecutors
    private let clock: SenderClock
    private let logger: Logger
    private var executorsOfKeys: [ProviderTokenSigner: EventLoopExecutor] = [:]
    private var sources: [ProviderTokenSigner: CredentialCache] = [:]
    private var files: [ProviderTokenSigner: CredentialFile<String>] = [:]
    private var transports: [SigningKeyConnectionKey: HTTP2Transport] = [:]
    private var routesOfKey: [ProviderTokenSigner: [ProviderRoute]] = [:]
    private var certificates: [CertificateConnectionKey: CertificateTransport] = [:]
    private var routesOfCertificate: [CertificateConnectionKey: [ProviderRoute]] = [:]

    private struct SigningKeyConnectionKey: Hashable {
        let key: ProviderTokenSigner
        let environment: ProviderEnvironment
    }

    private struct CertificateConnectionKey: Hashable {
        let files: APNsCertificate
        /// A certificate belongs to one app and states its topics.
        let topic: String
        let environment: ProviderEnvironment
    }

    /// Mints a token with every key and reads every certificate, so an unusable credential is reported at start.
    init(
        apps: AppCatalog, settings: APNsSettings, eventLoopGroup: any EventLoopGroup, clock: SenderClock = .system,
        logger: Logger
    ) async throws {
        self.settings = settings
        channels = ChannelManagement(settings.channels, caFile: settings.caFile)
        loops = EventLoopExecutors(eventLoopGroup)
        self.clock = clock
        self.logger = logger
        for app in apps.apps { try await add(app) }
    }

    /// Mints a token with the app's key, or reads its certificates.
    mutating func add(_ app: AppConfiguration) async throws {
        guard let apns = app.apns else { return }
        switch apns.credential {
        case .key(let key): try await add(app.id, apns, key)
        case .certificates(let certificates):
            channels.refuse(app.id)
            let executor = loops.next()
            executors[app.id] = executor
            for (environment, files) in certificates.sorted(by: { $0.key < $1.key }) {
                try await add(app.id, apns, files, environment, on: executor.eventLoop)
            }
        }
    }

    private mutating func add(_ app: AppID, _ apns: APNsAppConfiguration, _ key: APNsSigningKey) async throws {
        let key = ProviderTokenSigner(keyID: key.keyID, teamID: key.teamID, keyFile: key.keyFile)
        let file = files[key] ?? key.file(clock: clock)
        files[key] = file
        _ = await file.reload()
        let source = sources[key] ?? key.source(file, clock: clock)
        sources[key] = source
        channels.add(app, bundle: apns.topic, credentials: source)
        let executor = executorsOfKeys[key] ?? loops.next()
        executorsOfKeys[key] = executor
        executors[app] = executor
        for environment in apns.environments.sorted() {
            let route = ProviderRoute(app: app, environment: environment)
            unusableRoutes[route] = file.problem.map { "\($0)" }
            routesOfKey[key, default: []].append(route)
            byRoute[route] = ProviderGateway(
                codec: APNsCodec(topic: apns.topic), credentials: source,
                transport: try transport(key, environment, on: executor.eventLoop),
                clock: clock)
        }
    }

    private mutating func add(
        _ app: AppID, _ apns: APNsAppConfiguration, _ files: APNsCertificate, _ environment: ProviderEnvironment,
        on eventLoop: any EventLoop
    ) async throws {
        let route = ProviderRoute(app: app, environment: environment)
        let key = CertificateConnectionKey(files: files, topic: apns.topic, environment: environment)
        let connection = try certificates[key] ?? connection(key, on: eventLoop)
        certificates[key] = connection
        routesOfCertificate[key, default: []].append(route)
        _ = await connection.reload()
        unusableRoutes[route] = connection.problem?.description
        byRoute[route] = ProviderGateway(
            codec: APNsCodec(topic: apns.topic) { .certificate(topics: connection.certificate?.topics) },
            credentials: connection, transport: connection, clock: clock)
    }

    var clients: [ProviderClient] {
        let ofKeys = transports.map { connection, transport in
            let routes = routesOfKey[connection.key, default: []].filter { $0.environment == connection.environment }
            return ProviderClient(apps: routes.map(\.app), environment: connection.environment) { transport.client }
        }
        return ofKeys
            + certificates.map { key, connection in
                let apps = routesOfCertificate[key, default: []].map(\.app)
                return ProviderClient(apps: apps, environment: key.environment) { connection.client }
            }
    }

    var watchedFiles: [CredentialWatcher.WatchedFile] {
        watchedKeyFiles + certificates.map { .init(file: $1, routes: routesOfCertificate[$0, default: []]) }
    }

    private var watchedKeyFiles: [CredentialWatcher.WatchedFile] {
        files.compactMap { key, file in
            guard let source = sources[key] else { return nil }
            let transports = transports.filter { $0.key.key == key }.map(\.value)
            return .init(file: file, routes: routesOfKey[key, default: []]) {
                source.renew()
                for transport in transports { transport.reconnect(from: transport.generation) }
            }
        }
    }

    private mutating func transport(
        _ key: ProviderTokenSigner, _ environment: ProviderEnvironment, on eventLoop: any EventLoop
    ) throws -> HTTP2Transport {
        let connection = SigningKeyConnectionKey(key: key, environment: environment)
        if let known = transports[connection] { return known }
        var configuration = settings.client
        // With provider tokens, APNs allows one stream until the first request is accepted (Apple: Sending
        // notification requests to APNs).
        configuration.startsWithOneStream = true
        let client = try HTTP2Client(
            endpoint: try endpoint(environment), configuration: configuration, eventLoopGroup: eventLoop,
            logger: logger)
        let transport = HTTP2Transport(client: client, provider: .apns)
        transports[connection] = transport
        return transport
    }

    private func connection(
        _ key: CertificateConnectionKey, on eventLoop: any EventLoop
    ) throws -> CertificateTransport {
        let endpoint = try endpoint(key.environment)
        return CertificateTransport(key.files, topic: key.topic) {
            [settings, logger] certificate throws(HTTP2Error) -> HTTP2Client in
            var endpoint = endpoint
            endpoint.tls.clientCertificate = certificate
            return try HTTP2Client(
                endpoint: endpoint, configuration: settings.client, eventLoopGroup: eventLoop, logger: logger)
        }
    }

    private func endpoint(_ environment: ProviderEnvironment) throws -> HTTP2Endpoint {
        guard let endpoint = settings.endpoints[environment] else {
            throw ConfigurationError("no APNs host is configured for the environment \(environment.rawValue)")
        }
        return endpoint
    }
}
