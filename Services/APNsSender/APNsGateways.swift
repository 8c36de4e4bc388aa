import HTTP2
import Logging
import NIOCore
import PushProtocol
import PushSending
import ServiceKit

/// Every configured app's way to APNs, on each of its environments.
///
/// Apple binds a connection to the key or certificate that was first used on it, and counts the tokens a key signs. So
/// there is one client for each of them and host, and one token source for each key, whoever shares them.
struct APNsGateways {
    private(set) var byLane: [LaneKey: ProviderGateway<APNsWire>] = [:]
    /// Those of the lanes with a signing key.
    private(set) var clients: [HTTP2Client] = []
    /// The connections of the lanes with a certificate.
    private(set) var certified: [LaneKey: CertifiedConnection] = [:]
    /// The lanes whose key or certificate is of no use, and why. One that is put right is taken up with the lane's next
    /// probe.
    private(set) var unusable: [LaneKey: String] = [:]

    private let settings: APNsSettings
    private let eventLoopGroup: any EventLoopGroup
    private let clock: SenderClock
    private let logger: Logger
    private var sources: [ProviderToken: CredentialCache] = [:]
    private var files: [ProviderToken: CredentialFile<String>] = [:]
    private var transports: [KeyConnection: HTTP2Transport] = [:]
    private var lanesOfKey: [ProviderToken: [LaneKey]] = [:]
    private var certificates: [CertificateConnection: CertifiedConnection] = [:]

    private struct KeyConnection: Hashable {
        let key: ProviderToken
        let environment: ProviderEnvironment
    }

    private struct CertificateConnection: Hashable {
        let files: APNsCertificate
        let environment: ProviderEnvironment
    }

    /// Mints a token with every key and reads every certificate, so that one that is of no use is known from the start.
    init(
        apps: AppCatalog, settings: APNsSettings, eventLoopGroup: any EventLoopGroup, clock: SenderClock = .system,
        logger: Logger
    ) async throws {
        self.settings = settings
        self.eventLoopGroup = eventLoopGroup
        self.clock = clock
        self.logger = logger
        for app in apps.apps {
            guard let apns = app.apns else { continue }
            switch apns.credential {
            case .key(let key): try await add(app.id, apns, key)
            case .certificates(let certificates):
                for (environment, files) in certificates.sorted(by: { $0.key < $1.key }) {
                    try add(app.id, apns, files, environment)
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
        for environment in apns.environments.sorted() {
            let lane = LaneKey(app: app, environment: environment)
            unusable[lane] = file.problem.map { "\($0)" }
            lanesOfKey[key, default: []].append(lane)
            byLane[lane] = ProviderGateway(
                wire: APNsWire(topic: apns.topic), credentials: source, transport: try transport(key, environment),
                clock: clock)
        }
    }

    private mutating func add(
        _ app: AppID, _ apns: APNsAppConfiguration, _ files: APNsCertificate, _ environment: ProviderEnvironment
    ) throws {
        let lane = LaneKey(app: app, environment: environment)
        let connection = try connection(files, environment)
        let credential = CertificateCredential(connection: connection, topic: apns.topic)
        certified[lane] = connection
        unusable[lane] = credential.trouble
        byLane[lane] = ProviderGateway(
            wire: APNsWire(
                topic: apns.topic, authentication: .certificate(topics: connection.certificate?.topics)),
            credentials: credential, transport: connection, clock: clock)
    }

    /// The signing keys' files, each with its lanes, and how a changed one is put into force.
    var watched: [CredentialWatch<ProviderGateway<APNsWire>>.Entry] {
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
        _ key: ProviderToken, _ environment: ProviderEnvironment
    ) throws -> HTTP2Transport {
        let connection = KeyConnection(key: key, environment: environment)
        if let known = transports[connection] { return known }
        var configuration = settings.client
        // With provider tokens APNs takes one stream until a request has proved itself (A.3).
        configuration.startsWithOneStream = true
        let client = try HTTP2Client(
            endpoint: try endpoint(environment), configuration: configuration, eventLoopGroup: eventLoopGroup,
            logger: logger)
        clients.append(client)
        let transport = HTTP2Transport(client: client)
        transports[connection] = transport
        return transport
    }

    private mutating func connection(
        _ files: APNsCertificate, _ environment: ProviderEnvironment
    ) throws -> CertifiedConnection {
        let key = CertificateConnection(files: files, environment: environment)
        if let known = certificates[key] { return known }
        let endpoint = try endpoint(environment)
        let made = CertifiedConnection(files) {
            [settings, eventLoopGroup, logger] certificate throws(HTTP2Error) -> HTTP2Client in
            var endpoint = endpoint
            endpoint.tls.clientCertificate = certificate
            return try HTTP2Client(
                endpoint: endpoint, configuration: settings.client, eventLoopGroup: eventLoopGroup, logger: logger)
        }
        certificates[key] = made
        return made
    }

    private func endpoint(_ environment: ProviderEnvironment) throws -> HTTP2Endpoint {
        guard let endpoint = settings.endpoints[environment] else {
            throw ConfigurationError("no host is known for the environment \(environment.rawValue)")
        }
        return endpoint
    }
}
