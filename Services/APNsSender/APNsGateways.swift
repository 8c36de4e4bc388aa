import HTTP2
import Logging
import NIOCore
import PushProtocol
import PushSending
import PushWires
import ServiceKit

/// Every configured app's way to APNs, on each of its environments.
///
/// Apple binds a connection to the key or certificate that was first used on it, and counts the tokens a key signs. So
/// there is one client for each of them and host, and one token source for each key, whoever shares them.
struct APNsGateways {
    private(set) var byLane: [LaneKey: ProviderGateway] = [:]
    /// Where each app's pushes are handled: on the loop of its key's or certificates' connections.
    private(set) var executors: [AppID: any TaskExecutor] = [:]
    /// The lanes whose key or certificate is of no use, and why.
    private(set) var unusable: [LaneKey: String] = [:]

    private let settings: APNsSettings
    private var loops: EventLoopExecutors
    private let clock: SenderClock
    private let logger: Logger
    private var executorsOfKeys: [ProviderToken: EventLoopExecutor] = [:]
    private var sources: [ProviderToken: CredentialCache] = [:]
    private var files: [ProviderToken: CredentialFile<String>] = [:]
    private var transports: [KeyConnection: HTTP2Transport] = [:]
    private var lanesOfKey: [ProviderToken: [LaneKey]] = [:]
    private var certificates: [CertificateConnection: CertifiedConnection] = [:]
    private var lanesOfCertificate: [CertificateConnection: [LaneKey]] = [:]

    private struct KeyConnection: Hashable {
        let key: ProviderToken
        let environment: ProviderEnvironment
    }

    private struct CertificateConnection: Hashable {
        let files: APNsCertificate
        /// A certificate is one app's; whether this one is, it says itself.
        let topic: String
        let environment: ProviderEnvironment
    }

    /// Mints a token with every key and reads every certificate, so that one that is of no use is known from the start.
    init(
        apps: AppCatalog, settings: APNsSettings, eventLoopGroup: any EventLoopGroup, clock: SenderClock = .system,
        logger: Logger
    ) async throws {
        self.settings = settings
        loops = EventLoopExecutors(eventLoopGroup)
        self.clock = clock
        self.logger = logger
        for app in apps.apps {
            guard let apns = app.apns else { continue }
            switch apns.credential {
            case .key(let key): try await add(app.id, apns, key)
            case .certificates(let certificates):
                let executor = loops.next()
                executors[app.id] = executor
                for (environment, files) in certificates.sorted(by: { $0.key < $1.key }) {
                    try await add(app.id, apns, files, environment, on: executor.eventLoop)
                }
            }
        }
    }

    private mutating func add(_ app: AppID, _ apns: APNsAppConfiguration, _ key: APNsSigningKey) async throws {
        let key = ProviderToken(keyID: key.keyID, teamID: key.teamID, keyFile: key.keyFile)
        let file = files[key] ?? key.file(clock: clock)
        files[key] = file
        _ = await file.look()
        let source = sources[key] ?? key.source(file, clock: clock)
        sources[key] = source
        let executor = executorsOfKeys[key] ?? loops.next()
        executorsOfKeys[key] = executor
        executors[app] = executor
        for environment in apns.environments.sorted() {
            let lane = LaneKey(app: app, environment: environment)
            unusable[lane] = file.problem.map { "\($0)" }
            lanesOfKey[key, default: []].append(lane)
            byLane[lane] = ProviderGateway(
                wire: APNsWire(topic: apns.topic), credentials: source,
                transport: try transport(key, environment, on: executor.eventLoop),
                clock: clock)
        }
    }

    private mutating func add(
        _ app: AppID, _ apns: APNsAppConfiguration, _ files: APNsCertificate, _ environment: ProviderEnvironment,
        on eventLoop: any EventLoop
    ) async throws {
        let lane = LaneKey(app: app, environment: environment)
        let key = CertificateConnection(files: files, topic: apns.topic, environment: environment)
        let connection = try certificates[key] ?? connection(key, on: eventLoop)
        certificates[key] = connection
        lanesOfCertificate[key, default: []].append(lane)
        _ = await connection.look()
        unusable[lane] = connection.problem?.description
        byLane[lane] = ProviderGateway(
            wire: APNsWire(topic: apns.topic) { .certificate(topics: connection.certificate?.topics) },
            credentials: connection, transport: connection, clock: clock)
    }

    /// The connections of keys and certificates.
    var clients: [ProviderClient] {
        let ofKeys = transports.map { connection, transport in
            let lanes = lanesOfKey[connection.key, default: []].filter { $0.environment == connection.environment }
            return ProviderClient(apps: lanes.map(\.app), environment: connection.environment) { transport.client }
        }
        return ofKeys
            + certificates.map { key, connection in
                let apps = lanesOfCertificate[key, default: []].map(\.app)
                return ProviderClient(apps: apps, environment: key.environment) { connection.client }
            }
    }

    /// The files of keys and certificates, each with its lanes, and how a changed one is put into force.
    var watched: [CredentialWatch.Entry] {
        watchedKeys + certificates.map { .init(file: $1, lanes: lanesOfCertificate[$0, default: []]) }
    }

    private var watchedKeys: [CredentialWatch.Entry] {
        files.compactMap { key, file in
            guard let source = sources[key] else { return nil }
            let transports = transports.filter { $0.key.key == key }.map(\.value)
            return .init(file: file, lanes: lanesOfKey[key, default: []]) {
                source.renew()
                for transport in transports { transport.reconnect(from: transport.generation) }
            }
        }
    }

    private mutating func transport(
        _ key: ProviderToken, _ environment: ProviderEnvironment, on eventLoop: any EventLoop
    ) throws -> HTTP2Transport {
        let connection = KeyConnection(key: key, environment: environment)
        if let known = transports[connection] { return known }
        var configuration = settings.client
        // With provider tokens APNs takes one stream until a request has proved itself (A.3).
        configuration.startsWithOneStream = true
        let client = try HTTP2Client(
            endpoint: try endpoint(environment), configuration: configuration, eventLoopGroup: eventLoop,
            logger: logger)
        let transport = HTTP2Transport(client: client)
        transports[connection] = transport
        return transport
    }

    private func connection(
        _ key: CertificateConnection, on eventLoop: any EventLoop
    ) throws -> CertifiedConnection {
        let endpoint = try endpoint(key.environment)
        return CertifiedConnection(key.files, topic: key.topic) {
            [settings, logger] certificate throws(HTTP2Error) -> HTTP2Client in
            var endpoint = endpoint
            endpoint.tls.clientCertificate = certificate
            return try HTTP2Client(
                endpoint: endpoint, configuration: settings.client, eventLoopGroup: eventLoop, logger: logger)
        }
    }

    private func endpoint(_ environment: ProviderEnvironment) throws -> HTTP2Endpoint {
        guard let endpoint = settings.endpoints[environment] else {
            throw ConfigurationError("no host is known for the environment \(environment.rawValue)")
        }
        return endpoint
    }
}
