import HTTP2
import Logging
import PushProtocol
import PushSending
import Synchronization

/// One service account: its access tokens and its connections, shared by all apps that name its file, and the way to its
/// project.
///
/// Which project that is stands in the file. As long as that cannot be read nothing is sent; every push that is
/// let through to probe looks again. Once known, the project stays for the life of the process; another account of it is
/// taken up when the file changes, and one that is of no use leaves the old one in force.
final class FCMAccount: Sendable {
    let client: HTTP2Client
    private let accountFile: String
    private let joinQuota: @Sendable (_ project: String) -> QuotaGate
    private let tokenURL: String?
    private let deadline: Duration
    private let call: AccessToken.Call
    private let clock: SenderClock
    /// The account that is in force; see ``CredentialWatch``.
    let file: CredentialFile<ServiceAccount>
    private let way = Mutex<Way?>(nil)
    private let known: KnownProject

    /// Which project it is, once that is known.
    private final class KnownProject: Sendable {
        let id = Mutex<String?>(nil)
    }

    private struct Way {
        let gateway: ProviderGateway<FCMWire>
        let tokens: CredentialCache
        let transport: HTTP2Transport
        let quota: QuotaGate
    }

    /// The owner of `client` shuts it down. `joinQuota` is asked once, when the project is known.
    init(
        accountFile: String, client: HTTP2Client, tokenURL: String?, deadline: Duration, clock: SenderClock,
        joinQuota: @escaping @Sendable (_ project: String) -> QuotaGate, call: @escaping AccessToken.Call
    ) {
        self.accountFile = accountFile
        self.client = client
        self.joinQuota = joinQuota
        self.tokenURL = tokenURL
        self.deadline = deadline
        self.clock = clock
        self.call = call
        let known = KnownProject()
        self.known = known
        file = CredentialFile(path: accountFile) { contents throws(CredentialError) in
            let account = try ServiceAccount(contents, path: accountFile)
            if let project = known.id.withLock({ $0 }), project != account.projectID {
                throw .refused(
                    reason: "\(accountFile): is now an account of \(account.projectID), not of \(project); "
                        + "restart to move")
            }
            do throws(CredentialError) {
                _ = try await OAuthGrant.assertion(for: account, now: clock.now())
            } catch {
                throw .refused(reason: "\(accountFile): \(error)")
            }
            return account
        }
    }

    /// Puts a changed account into force: new tokens, on new connections.
    func renew() {
        guard let way = way.withLock({ $0 }) else { return }
        way.tokens.renew()
        way.transport.reconnect(from: way.transport.generation)
    }

    func gateway() throws(CredentialError) -> ProviderGateway<FCMWire> { try knownWay().gateway }

    /// The project's; `nil` while it is not known which that is.
    var quota: QuotaGate? { try? knownWay().quota }

    /// The way to the project; reads the account's file until it can be read.
    private func knownWay() throws(CredentialError) -> Way {
        if let way = way.withLock({ $0 }) { return way }
        let project = try currentAccount().projectID
        return way.withLock { way in
            if let way { return way }
            let token = AccessToken(
                keyFile: accountFile, project: project, tokenURL: tokenURL, account: currentAccount, call: call)
            let (tokens, transport) = (token.source(clock: clock), HTTP2Transport(client: client))
            let gateway = ProviderGateway(
                wire: FCMWire(project: project), credentials: tokens, transport: transport, clock: clock,
                deadline: deadline)
            known.id.withLock { $0 = project }
            let made = Way(gateway: gateway, tokens: tokens, transport: transport, quota: joinQuota(project))
            way = made
            return made
        }
    }

    /// The account in force; as long as there is none, what the file holds now.
    @Sendable private func currentAccount() throws(CredentialError) -> ServiceAccount {
        do throws(CredentialError) { return try file.value() } catch {
            return try ServiceAccount.load(path: accountFile)
        }
    }

    /// What keeps the account from being used, found out by reading it and signing with it. From here on the project is
    /// known, unless it is the file that cannot be read.
    func trouble() async -> String? {
        _ = await file.look()
        do throws(CredentialError) {
            _ = try knownWay()
            let account = try ServiceAccount.load(path: accountFile)
            do throws(CredentialError) {
                _ = try await OAuthGrant.assertion(for: account, now: clock.now())
                return nil
            } catch {
                return "\(accountFile): \(error)"
            }
        } catch {
            return "\(error)"
        }
    }
}

/// An app's way to FCM: that of its project.
struct FCMGateway: PushGateway {
    let account: FCMAccount
    let clock: SenderClock

    var quota: QuotaGate? { account.quota }

    func render(_ push: Push) -> FCMWire.Rendering { FCMWire.render(push, now: clock.now()) }

    func send(_ copies: [Copy], of renderings: [FCMWire.Rendering]) async -> [GatewayAnswer] {
        do throws(CredentialError) {
            return try await account.gateway().send(copies, of: renderings)
        } catch {
            return copies.map { _ in .halted(reason: "\(error)") }
        }
    }
}
