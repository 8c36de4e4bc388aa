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
        do throws(KnownApps.UnknownSigner) {
            try lockedApps.withLock { apps throws(KnownApps.UnknownSigner) in
                switch posted.key {
                case .apns(let key): try apps.add(key, revokesOthers: posted.revokesOthers)
                case .fcm(let key): try apps.add(key, revokesOthers: posted.revokesOthers)
                }
            }
        } catch {
            throw ControlRequestError("no app signs as \(error.name)")
        }
        return 1
    }
}

struct PostedKey: Sendable {
    /// The public half of a key for APNs provider tokens.
    struct APNsSigningKey: Sendable {
        let keyID: String
        let publicKey: P256.Signing.PublicKey
    }

    /// The public half of a key for a service account's assertions.
    struct ServiceAccountKey: Sendable {
        /// The service account's e-mail address.
        let account: String
        let keyID: String
        let publicKey: _RSA.Signing.PublicKey
    }

    enum Key: Sendable {
        case apns(APNsSigningKey)
        case fcm(ServiceAccountKey)
    }

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
        // A missing key is reported below, as no PEM.
        let pem = try members.text("public_key") ?? ""
        revokesOthers = try members.flag("revokes_others")
        switch provider {
        case .apns:
            if members.has("account") { throw members.problem("account", "has no meaning for apns") }
            guard let publicKey = try? P256.Signing.PublicKey(pemRepresentation: pem) else {
                throw members.problem("public_key", "is not a P-256 public key in PEM")
            }
            key = .apns(APNsSigningKey(keyID: keyID, publicKey: publicKey))
        case .fcm:
            guard let account = try members.text("account") else { throw members.problem("account", "is missing") }
            guard let publicKey = try? _RSA.Signing.PublicKey(pemRepresentation: pem) else {
                throw members.problem("public_key", "is not an RSA public key in PEM")
            }
            key = .fcm(ServiceAccountKey(account: account, keyID: keyID, publicKey: publicKey))
        }
    }
}
