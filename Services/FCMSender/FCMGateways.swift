import HTTP2
import HTTPSFetch
import Logging
import NIOCore
import Providers
import PushProtocol
import PushSending
import SenderService
import ServiceKit
import Synchronization

/// The gateways of all apps to FCM. FCM has one environment, so each app has one route, in `production`.
///
/// Apps with the same service account share access tokens and connections. Apps of the same project share its quota.
struct FCMGateways: SenderGateways {
    private(set) var byRoute: [ProviderRoute: FCMGateway] = [:]
    /// The executor of each app: the event loop of its account's connections.
    private(set) var executors: [AppID: any TaskExecutor] = [:]
    /// Each account with its apps, in the order of their start.
    private(set) var accounts: [(account: FCMAccount, apps: [AppID])] = []
    private var usersOfFile: [String: AccountUsers] = [:]
    private var executorsOfFile: [String: EventLoopExecutor] = [:]
    private var loops: EventLoopExecutors
    private let settings: FCMSettings
    private let fetch: HTTPSFetch
    private let clock: SenderClock
    private let deadline: Duration
    private let logger: Logger
    let quotas: ProjectQuotas
    /// The routes whose service account is unusable at start, each with the reason.
    private(set) var unusableRoutes: [ProviderRoute: String] = [:]

    var clients: [ProviderClient] {
        accounts.map { account, apps in
            ProviderClient(apps: apps, environment: .production) { account.client }
        }
    }

    var watchedFiles: [CredentialWatcher.WatchedFile] {
        accounts.map { account, apps in
            .init(
                file: account.file, routes: apps.map { ProviderRoute(app: $0, environment: .production) },
                renew: account.renew)
        }
    }

    /// The response timeout: the minimum that Google documents (Firebase: FCM best practices when sending at scale).
    static let deadline = Duration.seconds(10)

    /// Loads every service account and signs a test assertion with its key. So ``unusableRoutes`` is known at start.
    init(
        apps: AppCatalog, settings: FCMSettings, eventLoopGroup: any EventLoopGroup, clock: SenderClock = .system,
        deadline: Duration = FCMGateways.deadline, logger: Logger
    ) async throws {
        self.settings = settings
        self.clock = clock
        self.deadline = deadline
        self.logger = logger
        fetch = HTTPSFetch(caFile: settings.caFile)
        quotas = ProjectQuotas(perMinute: settings.quota, clock: clock, logger: logger)
        loops = EventLoopExecutors(eventLoopGroup)
        let appsByFile = Dictionary(grouping: apps.apps.filter { $0.fcm != nil }) { $0.fcm?.serviceAccountFile ?? "" }
        for (_, apps) in appsByFile.sorted(by: { $0.key < $1.key }) {
            for app in apps { try await add(app) }
        }
    }

    /// Loads the app's service account, unless another app uses it already.
    mutating func add(_ app: AppConfiguration) async throws {
        guard let fcm = app.fcm else { return }
        let users: AccountUsers
        let index: Int
        if let known = accounts.firstIndex(where: { $0.account.file.path == fcm.serviceAccountFile }) {
            index = known
            users = usersOfFile[fcm.serviceAccountFile] ?? AccountUsers()
        } else {
            index = accounts.count
            users = AccountUsers()
            usersOfFile[fcm.serviceAccountFile] = users
            let executor = loops.next()
            accounts.append((try account(fcm.serviceAccountFile, of: users, on: executor.eventLoop), []))
            executorsOfFile[fcm.serviceAccountFile] = executor
        }
        let account = accounts[index].account
        accounts[index].apps.append(app.id)
        executors[app.id] = executorsOfFile[fcm.serviceAccountFile]
        users.add(app.id, messagesPerMinute: fcm.messagesPerMinute)
        // Before the project is known, the account joins the quota with all of its users.
        if let project = account.project {
            _ = quotas.join(project, apps: [app.id], configuredPerMinute: fcm.messagesPerMinute)
        }
        let route = ProviderRoute(app: app.id, environment: .production)
        unusableRoutes[route] = await account.load()
        byRoute[route] = FCMGateway(account: account, clock: clock, validateOnly: settings.validateOnly)
    }

    private func account(
        _ file: String, of users: AccountUsers, on eventLoop: any EventLoop
    ) throws -> FCMAccount {
        FCMAccount(
            accountFile: file,
            client: try HTTP2Client(
                endpoint: settings.endpoint, configuration: settings.client, eventLoopGroup: eventLoop, logger: logger),
            tokenURL: settings.tokenURL, deadline: deadline, clock: clock,
            joinQuota: { [quotas] project in
                let (apps, lowestQuota) = users.current
                return quotas.join(project, apps: apps, configuredPerMinute: lowestQuota)
            },
            requestToken: fetch.postForm)
    }
}

/// The apps that share a service account.
private final class AccountUsers: Sendable {
    private let users = Mutex<(apps: [AppID], lowestQuota: Int?)>(([], nil))

    /// The apps, and the lowest `messages-per-minute` that one of them configures.
    var current: (apps: [AppID], lowestQuota: Int?) { users.withLock { $0 } }

    func add(_ app: AppID, messagesPerMinute: Int?) {
        users.withLock { users in
            users.apps.append(app)
            users.lowestQuota = [users.lowestQuota, messagesPerMinute].compactMap { $0 }.min()
        }
    }
}

extension HTTPSFetch {
    /// Requests an access token (``AccessTokenProvider/TokenRequest``). Transfer errors become credential errors.
    @Sendable fileprivate func postForm(
        _ url: String, _ form: [UInt8]
    ) async throws(CredentialError) -> (Int, [UInt8]) {
        let request = FetchRequest(
            method: "POST", url: url, headers: [(name: "content-type", value: "application/x-www-form-urlencoded")],
            body: form)
        do throws(FetchError) {
            let response = try await send(request)
            return (response.status, response.body)
        } catch {
            throw error.isRetriable
                ? .unavailable(reason: "the token endpoint: \(error)")
                : .refused(reason: "the token endpoint: \(error)")
        }
    }
}
