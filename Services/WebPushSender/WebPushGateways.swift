import HTTP2
import Logging
import NIOCore
import Primitives
import Providers
import PushProtocol
import PushSending
import SenderService
import ServiceKit
import Synchronization

/// The gateways of all apps with a Web Push key. Each app has one route, in `production`; the push services of its
/// browsers have connections, pauses and tokens of their own (decision 142).
struct WebPushGateways: SenderGateways {
    private(set) var byRoute: [ProviderRoute: WebPushGateway] = [:]
    private(set) var executors: [AppID: any TaskExecutor] = [:]
    private(set) var unusableRoutes: [ProviderRoute: String] = [:]
    private(set) var watchedFiles: [CredentialWatcher.WatchedFile] = []
    /// Clients choose the push services, so there are no lasting clients; ``IdleOrigins`` closes connections.
    var clients: [ProviderClient] { [] }
    let pools = OriginPools()
    private var loops: EventLoopExecutors
    private let settings: WebPushSettings
    private let clock: SenderClock
    private let deadline: Duration
    private let logger: Logger

    /// The response timeout.
    static let deadline = Duration.seconds(10)

    init(
        apps: AppCatalog, settings: WebPushSettings, eventLoopGroup: any EventLoopGroup, clock: SenderClock = .system,
        deadline: Duration = WebPushGateways.deadline, logger: Logger
    ) async throws {
        self.settings = settings
        self.clock = clock
        self.deadline = deadline
        self.logger = logger
        loops = EventLoopExecutors(eventLoopGroup)
        for app in apps.apps { try await add(app) }
    }

    /// - Throws: A `ConfigurationError` for a wrong subject or home page. A wrong key makes the route unusable until its
    ///   file is correct.
    mutating func add(_ app: AppConfiguration) async throws {
        guard let configuration = app.webPush else { return }
        let account = try VAPIDAccount(configuration, of: app.id, clock: clock)
        let site = try Self.site(configuration, of: app.id)
        let executor = loops.next()
        let (settings, clock, deadline, logger) = (settings, clock, deadline, logger)
        let pool = OriginPool(capacity: settings.origins, clock: clock) { endpoint throws(HTTP2Error) in
            let policy = settings.policy
            let client = try HTTP2Client(
                endpoint: HTTP2Endpoint(url: endpoint.origin, caFile: settings.caFile),
                configuration: settings.client,
                mayConnect: { AddressClass($0).isAllowed(privateNetworks: policy.privateNetworks) },
                eventLoopGroup: executor.eventLoop, logger: logger)
            let tokens = account.tokens(for: endpoint.origin)
            let gateway = ProviderGateway(
                codec: WebPushCodec(origin: endpoint.origin, site: site, policy: policy), credentials: tokens,
                transport: HTTP2Transport(client: client, provider: .webpush), clock: clock, deadline: deadline)
            return Origin(name: endpoint.origin, client: client, gateway: gateway, tokens: tokens)
        }
        pools.insert(pool)
        let route = ProviderRoute(app: app.id, environment: .production)
        watchedFiles.append(.init(file: account.file, routes: [route], renew: pool.renewTokens))
        unusableRoutes[route] = await account.load()
        executors[app.id] = executor
        byRoute[route] = WebPushGateway(
            app: app.id, account: account, pool: pool, site: site, policy: settings.policy, clock: clock,
            logger: logger)
    }

    private static func site(_ app: WebPushAppConfiguration, of id: AppID) throws(ConfigurationError) -> WebPushSite {
        do throws(OutboundURL.Refusal) {
            return try WebPushSite(app.homePage.text)
        } catch {
            throw ConfigurationError("apps.\(id).webpush.home-page: \(error)")
        }
    }
}

/// An app's VAPID key and contact.
final class VAPIDAccount: Sendable {
    /// The key in use; see ``CredentialWatcher``.
    let file: CredentialFile<VAPIDKey>
    private let contact: VAPIDContact
    private let clock: SenderClock

    init(_ app: WebPushAppConfiguration, of id: AppID, clock: SenderClock) throws(ConfigurationError) {
        do throws(VAPIDKey.Problem) {
            contact = try VAPIDContact(app.subject)
        } catch {
            throw ConfigurationError("apps.\(id).webpush.subject: \(error)")
        }
        self.clock = clock
        let path = app.keyFile
        file = CredentialFile(path: path) { contents throws(CredentialError) in
            do throws(VAPIDKey.Problem) {
                return try VAPIDKey(file: contents)
            } catch {
                throw .refused(reason: "\(path): \(error)")
            }
        }
    }

    /// Loads the key. Returns the problem that makes it unusable, or `nil`.
    func load() async -> String? {
        _ = await file.reload()
        do throws(CredentialError) {
            _ = try file.value()
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// The tokens for one push service (RFC 8292 §2).
    func tokens(for origin: String) -> CredentialCache {
        CredentialCache(clock: clock) { [self] () throws(CredentialError) in
            let key = try file.value()
            guard let token = try? VAPIDToken.sign(for: origin, key: key, contact: contact, at: clock.now()) else {
                throw .refused(reason: "\(file.path): signs no token")
            }
            return MintedCredential(
                authorization: token.authorization, renewAfter: VAPIDTokenCache.maximumAge,
                usableFor: VAPIDToken.lifetime - .seconds(3600), issuedAt: token.issuedAt)
        }
    }
}
