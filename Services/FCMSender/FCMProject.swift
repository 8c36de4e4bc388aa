import HTTP2
import Logging
import PushProtocol
import PushSending
import Synchronization

/// One service account: its project, its access tokens, its connections and its quota, shared by all apps that name it.
///
/// Which project it is stands in the account's file. As long as that cannot be read nothing is sent; every push that is
/// let through to probe looks again. Once known, the project stays for the life of the process.
final class FCMProject: Sendable {
    let accountFile: String
    let client: HTTP2Client
    let quota: QuotaGate
    private let tokenURL: String?
    private let deadline: Duration
    private let call: AccessToken.Call
    private let clock: SenderClock
    private let way = Mutex<ProviderGateway<FCMWire>?>(nil)

    /// The owner of `client` shuts it down.
    init(
        accountFile: String, client: HTTP2Client, quota: QuotaGate, tokenURL: String?, deadline: Duration,
        clock: SenderClock, call: @escaping AccessToken.Call
    ) {
        self.accountFile = accountFile
        self.client = client
        self.quota = quota
        self.tokenURL = tokenURL
        self.deadline = deadline
        self.clock = clock
        self.call = call
    }

    /// The way to the project; reads the account's file until it can be read.
    func gateway() throws(CredentialError) -> ProviderGateway<FCMWire> {
        if let gateway = way.withLock({ $0 }) { return gateway }
        let project = try ServiceAccount.load(path: accountFile).projectID
        return way.withLock { way in
            if let gateway = way { return gateway }
            let token = AccessToken(keyFile: accountFile, project: project, tokenURL: tokenURL, call: call)
            let gateway = ProviderGateway(
                wire: FCMWire(project: project), credentials: token.source(clock: clock),
                transport: HTTP2Transport(client: client), clock: clock, deadline: deadline)
            way = gateway
            return gateway
        }
    }

    /// What keeps the account from being used, found out by reading it and signing with it. From here on the project is
    /// known, unless it is the file that cannot be read.
    func trouble() async -> String? {
        do throws(CredentialError) {
            _ = try gateway()
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
    let project: FCMProject
    let clock: SenderClock

    func render(_ push: Push) -> FCMWire.Rendering { FCMWire.render(push, now: clock.now()) }

    func send(_ copies: [Copy], of renderings: [FCMWire.Rendering]) async -> [GatewayAnswer] {
        do throws(CredentialError) {
            return try await project.gateway().send(copies, of: renderings)
        } catch {
            return copies.map { _ in .halted(reason: "\(error)") }
        }
    }
}
