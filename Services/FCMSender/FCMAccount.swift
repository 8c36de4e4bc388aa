import HTTP2
import Providers
import PushProtocol
import PushSending
import Synchronization

/// A Google service account with its access tokens, connections and project. Apps that name the same file share it.
///
/// The file states the project; nothing is sent until the file is valid. The project is then fixed until the process
/// ends. A changed file is loaded while running if its account belongs to the same project; an invalid file keeps the
/// former account.
final class FCMAccount: Sendable {
    let client: HTTP2Client
    private let joinQuota: @Sendable (_ project: String) -> QuotaLimiter
    private let tokenURL: String?
    private let deadline: Duration
    private let requestToken: AccessTokenProvider.TokenRequest
    private let clock: SenderClock
    /// The account in use; see ``CredentialWatcher``.
    let file: CredentialFile<ServiceAccount>
    private let connection = Mutex<ProjectConnection?>(nil)
    private let known: KnownProject

    /// The account's project, once known.
    private final class KnownProject: Sendable {
        let id = Mutex<String?>(nil)
    }

    private struct ProjectConnection {
        let gateway: ProviderGateway
        let tokens: CredentialCache
        let transport: HTTP2Transport
        let quota: QuotaLimiter
    }

    /// The owner of `client` shuts it down. Calls `joinQuota` once, when the project is known.
    init(
        accountFile: String, client: HTTP2Client, tokenURL: String?, deadline: Duration, clock: SenderClock,
        joinQuota: @escaping @Sendable (_ project: String) -> QuotaLimiter,
        requestToken: @escaping AccessTokenProvider.TokenRequest
    ) {
        self.client = client
        self.joinQuota = joinQuota
        self.tokenURL = tokenURL
        self.deadline = deadline
        self.clock = clock
        self.requestToken = requestToken
        let known = KnownProject()
        self.known = known
        file = CredentialFile(path: accountFile) { contents throws(CredentialError) in
            let account = try ServiceAccount(contents, path: accountFile)
            if let project = known.id.withLock({ $0 }), project != account.projectID {
                throw .refused(
                    reason: "\(accountFile): is now an account of \(account.projectID), not of \(project); "
                        + "restart to change the project")
            }
            do throws(CredentialError) {
                _ = try await OAuthGrant.assertion(for: account, now: clock.now())
            } catch {
                throw .refused(reason: "\(accountFile): \(error)")
            }
            return account
        }
    }

    /// Switches to a changed account: new tokens on new connections.
    func renew() {
        guard let connection = connection.withLock({ $0 }) else { return }
        connection.tokens.renew()
        connection.transport.reconnect(from: connection.transport.generation)
    }

    func gateway() throws(CredentialError) -> ProviderGateway { try projectConnection().gateway }

    /// The project; `nil` until it is known.
    var project: String? { known.id.withLock { $0 } }

    /// The project's quota; `nil` until the project is known.
    var quota: QuotaLimiter? { try? projectConnection().quota }

    /// Returns the connection to the project. Creates it on first use of a valid account.
    private func projectConnection() throws(CredentialError) -> ProjectConnection {
        if let connection = connection.withLock({ $0 }) { return connection }
        let project = try file.value().projectID
        return connection.withLock { connection in
            if let connection { return connection }
            let token = AccessTokenProvider(
                keyFile: file.path, project: project, tokenURL: tokenURL, account: file.value,
                requestToken: requestToken)
            let tokens = token.source(clock: clock)
            let transport = HTTP2Transport(client: client, provider: .fcm)
            let gateway = ProviderGateway(
                codec: FCMCodec(project: project), credentials: tokens, transport: transport, clock: clock,
                deadline: deadline)
            known.id.withLock { $0 = project }
            let opened = ProjectConnection(
                gateway: gateway, tokens: tokens, transport: transport, quota: joinQuota(project))
            connection = opened
            return opened
        }
    }

    /// Loads the file. Returns the problem that makes the account unusable, or `nil`.
    func load() async -> String? {
        _ = await file.reload()
        do throws(CredentialError) {
            _ = try projectConnection()
            return nil
        } catch {
            return "\(error)"
        }
    }
}

/// An app's gateway to FCM, through its project.
struct FCMGateway: PushGateway {
    let account: FCMAccount
    let clock: SenderClock
    /// Whether FCM validates messages and delivers none.
    var validateOnly = false

    var quota: QuotaLimiter? { account.quota }

    func render(_ push: Push) -> any PushRendering {
        FCMRendering(push, now: clock.now(), validateOnly: validateOnly)
    }

    func send(
        _ requests: [TargetRequest], of renderings: [any PushRendering], in lane: Lane,
        mayStart: @escaping @Sendable (TargetRequest) -> Bool
    ) async -> [SendResult] {
        do throws(CredentialError) {
            return try await account.gateway().send(requests, of: renderings, in: lane, mayStart: mayStart)
        } catch {
            return requests.map { _ in .halted(reason: "\(error)") }
        }
    }
}
