import HTTP2
import HTTPSFetch
import Logging
import NIOCore
import PushProtocol
import PushSending
import ServiceKit

/// Every configured app's way to FCM. FCM has one world, so a lane is an app's `production`.
///
/// Apps with the same service account share its access tokens and connections.
struct FCMGateways {
    private(set) var byLane: [LaneKey: ProviderGateway<FCMWire>] = [:]
    private(set) var clients: [HTTP2Client] = []
    /// The lanes whose service account cannot be used, and why.
    private(set) var unusable: [LaneKey: String] = [:]

    private struct Shared {
        let credentials: CredentialCache
        let transport: HTTP2Transport
    }

    /// Reads every service account and signs with it, so that one that cannot be used is known from the start.
    ///
    /// A key that is put right is taken up with the lane's next probe; a file that could not be read at all, and so left
    /// the project unknown, with the next start.
    init(
        apps: AppCatalog, settings: FCMSettings, eventLoopGroup: any EventLoopGroup, clock: SenderClock = .system,
        logger: Logger
    ) async throws {
        let fetch = HTTPSFetch(caFile: settings.caFile)
        var shared: [String: Shared] = [:]
        for app in apps.apps {
            guard let fcm = app.fcm else { continue }
            let lane = LaneKey(app: app.id, environment: .production)
            let (account, trouble) = await Self.account(fcm.serviceAccountFile, clock)
            unusable[lane] = trouble
            let parts =
                try shared[fcm.serviceAccountFile]
                ?? {
                    let client = try HTTP2Client(
                        endpoint: settings.endpoint, configuration: settings.client, eventLoopGroup: eventLoopGroup,
                        logger: logger)
                    clients.append(client)
                    let token = AccessToken(
                        keyFile: fcm.serviceAccountFile, tokenURL: settings.tokenURL, call: fetch.postForm)
                    return Shared(credentials: token.source(clock: clock), transport: HTTP2Transport(client: client))
                }()
            shared[fcm.serviceAccountFile] = parts
            byLane[lane] = ProviderGateway(
                wire: FCMWire(project: account?.projectID ?? ""),
                credentials: account == nil ? Self.refusal(trouble ?? "", clock) : parts.credentials,
                transport: parts.transport, clock: clock)
        }
    }

    /// The account as far as it can be read, and what keeps it from being used.
    private static func account(_ path: String, _ clock: SenderClock) async -> (ServiceAccount?, trouble: String?) {
        var account: ServiceAccount?
        do throws(CredentialError) {
            let read = try ServiceAccount.load(path: path)
            account = read
            _ = try await OAuthGrant.assertion(for: read, now: clock.now())
            return (account, nil)
        } catch {
            return (account, account == nil ? "\(error); mend it and restart" : "\(path): \(error)")
        }
    }

    /// What a lane without a project has in place of a credential: nothing is sent into the dark.
    private static func refusal(_ reason: String, _ clock: SenderClock) -> CredentialCache {
        CredentialCache(clock: clock) { () throws(CredentialError) in throw .refused(reason: reason) }
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
