import HTTP2
import HTTPSFetch
import Logging
import NIOCore
import PushProtocol
import PushSending
import ServiceKit

/// Every configured app's way to FCM. FCM has one world, so a lane is an app's `production`.
///
/// Apps with the same service account share its access tokens and connections, and those of one project its quota.
struct FCMGateways {
    private(set) var byLane: [LaneKey: FCMGateway] = [:]
    /// Where each app's pushes are handled: on the loop of its account's connections.
    private(set) var executors: [AppID: any TaskExecutor] = [:]
    /// Each account with the apps that send with it.
    private(set) var accounts: [(account: FCMAccount, apps: [AppID])] = []
    let quotas: ProjectQuotas
    /// The lanes whose service account cannot be used, and why.
    private(set) var unusable: [LaneKey: String] = [:]

    /// The connections of the accounts.
    var clients: [ProviderClient] {
        accounts.map { account, apps in
            ProviderClient(apps: apps, environment: .production) { account.client }
        }
    }

    /// The accounts' files, each with its lanes, and how a changed one is put into force.
    var watched: [CredentialWatch.Entry] {
        accounts.map { account, apps in
            .init(
                file: account.file, lanes: apps.map { LaneKey(app: $0, environment: .production) },
                renew: account.renew)
        }
    }

    /// How long one request may wait for its answer: Google's least (`push-protocols` B.7).
    static let deadline = Duration.seconds(10)

    /// Reads every service account and signs with it, so that one that cannot be used is known from the start.
    init(
        apps: AppCatalog, settings: FCMSettings, eventLoopGroup: any EventLoopGroup, clock: SenderClock = .system,
        deadline: Duration = FCMGateways.deadline, logger: Logger
    ) async throws {
        let fetch = HTTPSFetch(caFile: settings.caFile)
        quotas = ProjectQuotas(perMinute: settings.quota, clock: clock, logger: logger)
        var loops = EventLoopExecutors(eventLoopGroup)
        let files = Dictionary(grouping: apps.apps.filter { $0.fcm != nil }) { $0.fcm?.serviceAccountFile ?? "" }
        for (file, apps) in files.sorted(by: { $0.key < $1.key }) {
            let (ids, told) = (apps.map(\.id), apps.compactMap { $0.fcm?.messagesPerMinute }.min())
            let executor = loops.next()
            let account = FCMAccount(
                accountFile: file,
                client: try HTTP2Client(
                    endpoint: settings.endpoint, configuration: settings.client, eventLoopGroup: executor.eventLoop,
                    logger: logger), tokenURL: settings.tokenURL, deadline: deadline, clock: clock,
                joinQuota: { [quotas] project in quotas.join(project, apps: ids, told: told) }, call: fetch.postForm)
            accounts.append((account, ids))
            let trouble = await account.trouble()
            for id in ids {
                executors[id] = executor
                let lane = LaneKey(app: id, environment: .production)
                unusable[lane] = trouble
                byLane[lane] = FCMGateway(account: account, clock: clock)
            }
        }
    }
}

extension HTTPSFetch {
    /// `POST`s a form and gives back status and body; what goes wrong on the way is a credential's trouble.
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
