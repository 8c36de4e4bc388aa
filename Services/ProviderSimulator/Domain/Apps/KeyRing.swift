import Crypto
import CryptoExtras
import PushProtocol
import Synchronization

/// The apps that are known and the keys that are good for them, which may be exchanged while the simulator runs. Safe from
/// any thread.
final class KeyRing: Sendable {
    private let state: Mutex<KnownApps>

    init(_ apps: KnownApps) { state = Mutex(apps) }

    var apps: KnownApps { state.withLock { $0 } }

    /// Takes a posted key.
    ///
    /// - Returns: how many.
    func take(_ value: JSONValue) throws(ControlProblem) -> Int {
        let key = try RotatedKey(value)
        let result = state.withLock { apps in
            Result { () throws(KnownApps.Unknown) in
                switch key.half {
                case .apns(let half): try apps.add(half, revokesOthers: key.revokesOthers)
                case .fcm(let half): try apps.add(half, revokesOthers: key.revokesOthers)
                }
            }
        }
        if case .failure(let unknown) = result { throw ControlProblem("no app signs as \(unknown.name)") }
        return 1
    }
}

/// The public half of a key that takes another's place, as it is posted.
struct RotatedKey: Sendable {
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

    enum Half: Sendable {
        case apns(APNs)
        case fcm(Google)
    }

    let half: Half
    let revokesOthers: Bool

    init(_ value: JSONValue) throws(ControlProblem) {
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
            half = .apns(APNs(keyID: keyID, publicKey: publicKey))
        case .fcm:
            guard let account = try members.text("account") else { throw members.problem("account", "is missing") }
            guard let publicKey = try? _RSA.Signing.PublicKey(pemRepresentation: pem) else {
                throw members.problem("public_key", "is not an RSA public key in PEM")
            }
            half = .fcm(Google(account: account, keyID: keyID, publicKey: publicKey))
        }
    }
}
