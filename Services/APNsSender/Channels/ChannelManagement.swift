import HTTPSFetch
import Providers
import PushProtocol
import PushSending
import Synchronization

/// Creates and deletes broadcast channels of the apps that have a signing key (ProviderFacts.md §A.11). Channel
/// management has hosts of its own, and few requests.
final class ChannelManagement: Sendable {
    private struct Access {
        let bundle: String
        let credentials: CredentialCache
    }

    /// APNs or the network does not answer, or not now. The requester asks again.
    struct Unavailable: Error {
        let reason: String
    }

    private let urls: [ProviderEnvironment: String]
    private let fetch: HTTPSFetch
    /// `nil` for an app with certificates.
    private let apps = Mutex<[AppID: Access?]>([:])

    init(_ urls: [ProviderEnvironment: String], caFile: String?) {
        self.urls = urls
        fetch = HTTPSFetch(caFile: caFile)
    }

    /// Serves an app with the credentials of its pushes, because APNs limits the tokens of a key.
    func add(_ app: AppID, bundle: String, credentials: CredentialCache) {
        apps.withLock { $0[app] = .some(Access(bundle: bundle, credentials: credentials)) }
    }

    /// Refuses the requests of an app, because channels need a signing key.
    func refuse(_ app: AppID) { apps.withLock { $0[app] = .some(nil) } }

    func perform(_ request: ChannelRequest) async throws(Unavailable) -> ChannelAnswer.Result {
        // The app may be in a newer apps file.
        guard let known = apps.withLock({ $0[request.app] }), let url = urls[request.environment] else {
            throw Unavailable(reason: "unknown-app")
        }
        guard let access = known else { return .refused(reason: "no-signing-key") }
        let operation: ChannelOperation =
            switch request.operation {
            // The newest state waits for phones that are offline.
            case .create: .create(.mostRecent)
            case .delete(let channel): .delete(channel: channel.rawValue)
            }
        let credential: Credential
        let response: FetchResponse
        do {
            credential = try await access.credentials.current()
            response = try await fetch.send(
                FetchRequest(operation, url: url, bundle: access.bundle, credential.authorization ?? ""))
        } catch is CredentialError {
            throw Unavailable(reason: "credential-unusable")
        } catch {
            throw Unavailable(reason: "unreachable")
        }
        return try operation.answer(response)
    }
}

extension FetchRequest {
    fileprivate init(
        _ operation: ChannelOperation, url: String, bundle: String, _ authorization: String
    ) throws(WireError) {
        self.init(
            method: operation.method, url: url + operation.path(bundle: bundle),
            headers: [("authorization", authorization)] + operation.headers, body: try operation.body())
        if !body.isEmpty { headers.append(("content-type", "application/json")) }
    }
}

extension ChannelOperation {
    fileprivate func answer(
        _ response: FetchResponse
    ) throws(ChannelManagement.Unavailable) -> ChannelAnswer.Result {
        let reason = (try? WireCoding.decode(JSONValue.self, from: response.body))?["reason"]?.string ?? ""
        switch (self, response.status) {
        case (.create, 201):
            guard let channel = response["apns-channel-id"].flatMap(ChannelID.init(rawValue:)) else {
                return .refused(reason: "no-channel-id")
            }
            return .created(channel)
        case (.delete, 204), (.delete, 404): return .deleted
        case (.delete, _) where ["ChannelNotRegistered", "BadChannelId"].contains(reason): return .deleted
        case (_, 429), (_, 500...): throw ChannelManagement.Unavailable(reason: "status-\(response.status)")
        case (_, 403) where reason == "ExpiredProviderToken":
            throw ChannelManagement.Unavailable(reason: "token-expired")
        default:
            let printable = SanitizedReason.printable(reason)
            return .refused(reason: printable.isEmpty ? "status-\(response.status)" : printable)
        }
    }
}
