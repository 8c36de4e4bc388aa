import HTTP2
import HTTPSFetch
import Logging
import NIOCore
import PushProtocol
import PushSending
import ServiceKit

/// Every configured app's way to FCM. FCM has one world, so a lane is an app's `production`.
///
/// Apps with the same service account share its project's access tokens, connections and quota.
struct FCMGateways {
    private(set) var byLane: [LaneKey: FCMGateway] = [:]
    /// Each project with the apps that send to it.
    private(set) var projects: [(project: FCMProject, apps: [AppID])] = []
    /// The lanes whose service account cannot be used, and why.
    private(set) var unusable: [LaneKey: String] = [:]

    var clients: [HTTP2Client] { projects.map(\.project.client) }
    /// The accounts' files, each with its lanes, and how a changed one is put into force.
    var watched: [CredentialWatch<FCMGateway>.Entry] {
        projects.map { project, apps in
            .init(
                file: project.account, lanes: apps.map { LaneKey(app: $0, environment: .production) },
                renew: project.renew)
        }
    }
    var quotas: [LaneKey: QuotaGate] { byLane.mapValues(\.project.quota) }

    /// How long one request may take: Google's least (`push-protocols` B.7).
    static let deadline = Duration.seconds(10)

    /// Reads every service account and signs with it, so that one that cannot be used is known from the start. A file
    /// that is put right is taken up with the lane's next probe.
    init(
        apps: AppCatalog, settings: FCMSettings, eventLoopGroup: any EventLoopGroup, clock: SenderClock = .system,
        deadline: Duration = FCMGateways.deadline, logger: Logger
    ) async throws {
        let fetch = HTTPSFetch(caFile: settings.caFile)
        let accounts = Dictionary(grouping: apps.apps.filter { $0.fcm != nil }) { $0.fcm?.serviceAccountFile ?? "" }
        for (file, apps) in accounts.sorted(by: { $0.key < $1.key }) {
            let quota = apps.compactMap { $0.fcm?.messagesPerMinute }.min() ?? settings.quota
            let project = FCMProject(
                accountFile: file,
                client: try HTTP2Client(
                    endpoint: settings.endpoint, configuration: settings.client, eventLoopGroup: eventLoopGroup,
                    logger: logger),
                quota: QuotaGate(
                    apps.map(\.id.rawValue).joined(separator: "+"), provider: .fcm, perMinute: quota, clock: clock,
                    logger: logger), tokenURL: settings.tokenURL, deadline: deadline, clock: clock,
                call: fetch.postForm)
            projects.append((project, apps.map(\.id)))
            let trouble = await project.trouble()
            for app in apps {
                let lane = LaneKey(app: app.id, environment: .production)
                unusable[lane] = trouble
                byLane[lane] = FCMGateway(project: project, clock: clock)
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
