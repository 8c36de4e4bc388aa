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

    private struct Shared {
        let credentials: CredentialCache
        let transport: HTTP2Transport
    }

    /// Reads every service account and signs with it, so that one that cannot be used is told at the start.
    init(
        apps: AppCatalog, settings: FCMSettings, eventLoopGroup: any EventLoopGroup, clock: SenderClock = .system,
        logger: Logger
    ) async throws {
        let fetch = HTTPSFetch(caFile: settings.caFile)
        var shared: [String: Shared] = [:]
        for app in apps.apps {
            guard let fcm = app.fcm else { continue }
            let account = try await Self.account(fcm.serviceAccountFile, of: app.id, clock)
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
            byLane[LaneKey(app: app.id, environment: .production)] = ProviderGateway(
                wire: FCMWire(project: account.projectID), credentials: parts.credentials, transport: parts.transport,
                clock: clock)
        }
    }

    private static func account(_ path: String, of app: AppID, _ clock: SenderClock) async throws -> ServiceAccount {
        do throws(CredentialError) {
            let account = try ServiceAccount.load(path: path)
            _ = try await OAuthGrant.assertion(for: account, now: clock.now())
            return account
        } catch {
            throw ConfigurationError("app \(app): \(error)")
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
