import Crypto
import CryptoExtras
import PushProtocol
import Synchronization

/// The apps and signing keys that the simulator accepts. Keys can be rotated at run time. Safe from any thread.
final class AcceptedKeys: Sendable {
    private let state: Mutex<KnownApps>

    init(_ apps: KnownApps) { state = Mutex(apps) }

    var apps: KnownApps { state.withLock { $0 } }

    /// Adds a posted key.
    ///
    /// - Returns: the number of keys added.
    func take(_ value: JSONValue) throws(ControlRequestError) -> Int {
        let key = try PostedKey(value)
        let result = state.withLock { apps in
            Result { () throws(KnownApps.Unknown) in
                switch key.providerKey {
                case .apns(let providerKey): try apps.add(providerKey, revokesOthers: key.revokesOthers)
                case .fcm(let providerKey): try apps.add(providerKey, revokesOthers: key.revokesOthers)
                }
            }
        }
        if case .failure(let unknown) = result { throw ControlRequestError("no app signs as \(unknown.name)") }
        return 1
    }
}

/// A public signing key posted to `POST /keys`.
struct PostedKey: Sendable {
    struct APNs: Sendable {
        let keyID: String
        let publicKey: P256.Signing.PublicKey
    }

    struct Google: Sendable {
        /// The service account's e-mail address.
        let account: String
        let keyID: String
        let publicKey: _RSA.Signing.PublicKey
    }

    enum ProviderKey: Sendable {
        case apns(APNs)
        case fcm(Google)
    }

    let providerKey: ProviderKey
    let revokesOthers: Bool

    init(_ value: JSONValue) throws(ControlRequestError) {
        let members = try MemberReader(
            value, at: "", known: ["provider", "account", "key_id", "public_key", "revokes_others"])
        guard let provider = try members.choice("provider", of: Provider.self) else {
            throw members.problem("provider", "is missing; it is apns or fcm")
        }
        guard let keyID = try members.text("key_id") else { throw members.problem("key_id", "is missing") }
        let pem = try members.text("public_key") ?? ""
        revokesOthers = try members.flag("revokes_others")
        switch provider {
        case .apns:
            if members.has("account") { throw members.problem("account", "has no meaning for apns") }
            guard let publicKey = try? P256.Signing.PublicKey(pemRepresentation: pem) else {
                throw members.problem("public_key", "is not a P-256 public key in PEM")
            }
            providerKey = .apns(APNs(keyID: keyID, publicKey: publicKey))
        case .fcm:
            guard let account = try members.text("account") else { throw members.problem("account", "is missing") }
            guard let publicKey = try? _RSA.Signing.PublicKey(pemRepresentation: pem) else {
                throw members.problem("public_key", "is not an RSA public key in PEM")
            }
            providerKey = .fcm(Google(account: account, keyID: keyID, publicKey: publicKey))
        }
    }
}
