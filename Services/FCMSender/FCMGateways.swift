import HTTP2
import HTTPSFetch
import Logging
import NIOCore
import Providers
import PushProtocol
import PushSending
import SenderService
import ServiceKit

/// The gateways of all configured apps to FCM. FCM has one environment, so each app has one route, in `production`.
///
/// Apps with the same service account share access tokens and connections. Apps of the same project share its quota.
struct FCMGateways: SenderGateways {
    private(set) var byRoute: [ProviderRoute: FCMGateway] = [:]
    /// The executor of each app: the event loop of its account's connections.
    private(set) var executors: [AppID: any TaskExecutor] = [:]
    /// Each account with its apps.
    private(set) var accounts: [(account: FCMAccount, apps: [AppID])] = []
    /// The quota of each Google project.
    let quotas: ProjectQuotas
    /// The routes whose service account is unusable at start, each with the reason.
    private(set) var unusableRoutes: [ProviderRoute: String] = [:]

    /// The clients of all accounts.
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
        let fetch = HTTPSFetch(caFile: settings.caFile)
        quotas = ProjectQuotas(perMinute: settings.quota, clock: clock, logger: logger)
        var loops = EventLoopExecutors(eventLoopGroup)
        let appsByFile = Dictionary(grouping: apps.apps.filter { $0.fcm != nil }) { $0.fcm?.serviceAccountFile ?? "" }
        for (file, apps) in appsByFile.sorted(by: { $0.key < $1.key }) {
            let ids = apps.map(\.id)
            let lowestQuota = apps.compactMap { $0.fcm?.messagesPerMinute }.min()
            let executor = loops.next()
            let account = FCMAccount(
                accountFile: file,
                client: try HTTP2Client(
                    endpoint: settings.endpoint, configuration: settings.client, eventLoopGroup: executor.eventLoop,
                    logger: logger), tokenURL: settings.tokenURL, deadline: deadline, clock: clock,
                joinQuota: { [quotas] project in quotas.join(project, apps: ids, configuredPerMinute: lowestQuota) },
                requestToken: fetch.postForm)
            accounts.append((account, ids))
            let problem = await account.load()
            for id in ids {
                executors[id] = executor
                let route = ProviderRoute(app: id, environment: .production)
                unusableRoutes[route] = problem
                byRoute[route] = FCMGateway(account: account, clock: clock)
            }
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
