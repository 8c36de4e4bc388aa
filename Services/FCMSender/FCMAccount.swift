import HTTP2
import Logging
import PushProtocol
import PushSending
import PushWires
import Synchronization

/// One service account: its access tokens and its connections, shared by all apps that name its file, and the way to its
/// project.
///
/// Which project that is stands in the file; as long as that is of no use nothing is sent. Once known, the project stays for
/// the life of the process; another account of it is taken up when the file changes, and one that is of no use leaves the
/// old one in force.
final class FCMAccount: Sendable {
    let client: HTTP2Client
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
        let gateway: ProviderGateway
        let tokens: CredentialCache
        let transport: HTTP2Transport
        let quota: QuotaGate
    }

    /// The owner of `client` shuts it down. `joinQuota` is asked once, when the project is known.
    init(
        accountFile: String, client: HTTP2Client, tokenURL: String?, deadline: Duration, clock: SenderClock,
        joinQuota: @escaping @Sendable (_ project: String) -> QuotaGate, call: @escaping AccessToken.Call
    ) {
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

    func gateway() throws(CredentialError) -> ProviderGateway { try knownWay().gateway }

    /// The project's; `nil` while it is not known which that is.
    var quota: QuotaGate? { try? knownWay().quota }

    /// The way to the project; made when its account is first in force.
    private func knownWay() throws(CredentialError) -> Way {
        if let way = way.withLock({ $0 }) { return way }
        let project = try file.value().projectID
        return way.withLock { way in
            if let way { return way }
            let token = AccessToken(
                keyFile: file.path, project: project, tokenURL: tokenURL, account: file.value, call: call)
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

    /// Reads the file, and tells what keeps the account from being used. From here on the project is known, unless
    /// something does.
    func trouble() async -> String? {
        _ = await file.look()
        do throws(CredentialError) {
            _ = try knownWay()
            return nil
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

    func render(_ push: Push) -> any PushRendering { FCMRendering(push, now: clock.now()) }

    func send(
        _ copies: [Copy], of renderings: [any PushRendering], in lane: Lane,
        mayStart: @escaping @Sendable (Copy) -> Bool
    ) async -> [GatewayAnswer] {
        do throws(CredentialError) {
            return try await account.gateway().send(copies, of: renderings, in: lane, mayStart: mayStart)
        } catch {
            return copies.map { _ in .halted(reason: "\(error)") }
        }
    }
}
