import HTTP2
import Logging
import NIOCore
import PushProtocol
import PushSending
import ServiceKit

/// Every configured app's way to APNs, on each of its environments.
///
/// Apple binds a connection to the key that was first used on it, and counts the tokens a key signs. So there is one
/// client for each key and host, and one token source for each key, whoever shares them.
struct APNsGateways {
    private(set) var byLane: [LaneKey: ProviderGateway<APNsWire>] = [:]
    private(set) var clients: [HTTP2Client] = []
    /// The lanes whose key cannot sign, and why. A key that is put right is taken up with the lane's next probe.
    private(set) var unusable: [LaneKey: String] = [:]

    private struct Connection: Hashable {
        let key: ProviderToken
        let environment: ProviderEnvironment
    }

    /// Mints a token with every key, so that one that cannot sign is known from the start.
    init(
        apps: AppCatalog, settings: APNsSettings, eventLoopGroup: any EventLoopGroup, clock: SenderClock = .system,
        logger: Logger
    ) async throws {
        var sources: [ProviderToken: CredentialCache] = [:]
        var transports: [Connection: HTTP2Transport] = [:]
        for app in apps.apps {
            guard let apns = app.apns else { continue }
            let key = ProviderToken(keyID: apns.keyID, teamID: apns.teamID, keyFile: apns.keyFile)
            let trouble = await Self.trouble(with: key, clock)
            let source = sources[key] ?? key.source(clock: clock)
            sources[key] = source
            for environment in apns.environments.sorted() {
                let connection = Connection(key: key, environment: environment)
                let transport = try transports[connection] ?? connect(to: environment, settings, eventLoopGroup, logger)
                transports[connection] = transport
                let lane = LaneKey(app: app.id, environment: environment)
                unusable[lane] = trouble
                byLane[lane] = ProviderGateway(
                    wire: APNsWire(topic: apns.topic), credentials: source, transport: transport, clock: clock)
            }
        }
    }

    private static func trouble(with key: ProviderToken, _ clock: SenderClock) async -> String? {
        do {
            _ = try await key.mint(at: clock.now())
            return nil
        } catch {
            return "\(error)"
        }
    }

    private mutating func connect(
        to environment: ProviderEnvironment, _ settings: APNsSettings, _ eventLoopGroup: any EventLoopGroup,
        _ logger: Logger
    ) throws -> HTTP2Transport {
        guard let endpoint = settings.endpoints[environment] else {
            throw ConfigurationError("no host is known for the environment \(environment.rawValue)")
        }
        let client = try HTTP2Client(
            endpoint: endpoint, configuration: settings.client, eventLoopGroup: eventLoopGroup, logger: logger)
        clients.append(client)
        return HTTP2Transport(client: client)
    }
}
