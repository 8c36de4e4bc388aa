import Crypto
import CryptoExtras
import PushProtocol
import Synchronization

/// The current ``KnownApps``, behind a lock. `POST /keys` adds and revokes keys while the simulator runs.
final class AcceptedKeys: Sendable {
    private let lockedApps: Mutex<KnownApps>

    init(_ apps: KnownApps) { lockedApps = Mutex(apps) }

    var apps: KnownApps { lockedApps.withLock { $0 } }

    /// Calls `change` with the apps, under the lock.
    func withApps<Failure: Error>(_ change: (inout KnownApps) throws(Failure) -> Void) throws(Failure) {
        try lockedApps.withLock { apps throws(Failure) in try change(&apps) }
    }

    /// Adds the key of a `POST /keys` request.
    ///
    /// - Returns: The number of keys added, for the response: always 1.
    func add(_ body: JSONValue) throws(ControlRequestError) -> Int {
        let posted = try PostedKey(body)
        try withApps { apps throws(ControlRequestError) in try apps.add(posted) }
        return 1
    }
}

struct PostedKey: Sendable {
    enum Key: Sendable {
        /// For APNs provider tokens.
        case apns(P256.Signing.PublicKey)
        /// For the assertions of the service account with this e-mail address.
        case fcm(_RSA.Signing.PublicKey, account: String)
    }

    let keyID: String
    let key: Key
    /// Whether the simulator stops accepting the other keys of the same APNs key id or service account.
    let revokesOthers: Bool

    init(_ value: JSONValue) throws(ControlRequestError) {
        let members = try MemberReader(
            value, at: "", known: ["provider", "account", "key_id", "public_key", "revokes_others"])
        guard let provider = try members.choice("provider", of: Provider.self) else {
            throw members.problem("provider", "is missing; it is apns or fcm")
        }
        guard let keyID = try members.text("key_id") else { throw members.problem("key_id", "is missing") }
        self.keyID = keyID
        // A missing key is reported below, as no PEM.
        let pem = try members.text("public_key") ?? ""
        revokesOthers = try members.flag("revokes_others")
        switch provider {
        case .apns:
            if members.has("account") { throw members.problem("account", "has no meaning for apns") }
            guard let publicKey = try? P256.Signing.PublicKey(pemRepresentation: pem) else {
                throw members.problem("public_key", "is not a P-256 public key in PEM")
            }
            key = .apns(publicKey)
        case .fcm:
            guard let account = try members.text("account") else { throw members.problem("account", "is missing") }
            guard let publicKey = try? _RSA.Signing.PublicKey(pemRepresentation: pem) else {
                throw members.problem("public_key", "is not an RSA public key in PEM")
            }
            key = .fcm(publicKey, account: account)
        case .webpush: throw members.problem("provider", "is apns or fcm: a browser names its key when it subscribes")
        }
    }
}
