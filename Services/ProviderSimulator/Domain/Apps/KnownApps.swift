import Crypto
import CryptoExtras
import PushProtocol

/// The credentials that the simulator accepts: public keys and service accounts.
struct KnownApps: Sendable {
    /// By key id.
    private(set) var apnsKeys: [String: APNsKey] = [:]
    /// By the account's e-mail address, which is the `iss` of its assertions.
    private(set) var serviceAccounts: [String: ServiceAccount] = [:]
    private(set) var projects: Set<String> = []
    /// The VAPID public keys of apps: uncompressed points.
    private(set) var vapidKeys: [String: [UInt8]] = [:]

    /// Adds a key. Several apps of a team may share one.
    mutating func add(_ key: APNsKey) throws(Conflict) {
        guard let known = apnsKeys[key.keyID] else {
            apnsKeys[key.keyID] = key
            return
        }
        guard known.teamID == key.teamID,
            known.publicKeys.map(\.rawRepresentation) == key.publicKeys.map(\.rawRepresentation)
        else {
            throw Conflict(description: "the key id \(key.keyID) belongs to two different keys or teams")
        }
        apnsKeys[key.keyID]?.topics.formUnion(key.topics)
        apnsKeys[key.keyID]?.environments.formUnion(key.environments)
    }

    var topics: Set<String> { apnsKeys.values.reduce(into: certifiedTopics) { $0.formUnion($1.topics) } }
    /// Topics of apps in the catalog, also of those that use a certificate.
    var certifiedTopics: Set<String> = []

    mutating func add(_ account: ServiceAccount) {
        serviceAccounts[account.email] = account
        projects.insert(account.project)
    }

    mutating func add(vapidKey: [UInt8], of app: String) { vapidKeys[app] = vapidKey }

    /// The first app with this VAPID key, by name.
    func app(withVAPIDKey key: [UInt8]) -> String? { vapidKeys.filter { $0.value == key }.keys.min() }

    /// Adds a public key to a known service account, or under a known APNs key id. Apple would assign a new id; the
    /// catalog names only one.
    mutating func add(_ posted: PostedKey) throws(ControlRequestError) {
        switch posted.key {
        case .apns(let key):
            guard apnsKeys[posted.keyID] != nil else { throw ControlRequestError("no app signs as \(posted.keyID)") }
            if posted.revokesOthers {
                apnsKeys[posted.keyID]?.publicKeys = []
                revocations += 1
            }
            apnsKeys[posted.keyID]?.publicKeys.append(key)
        case .fcm(let key, let account):
            guard serviceAccounts[account] != nil else { throw ControlRequestError("no app signs as \(account)") }
            if posted.revokesOthers { serviceAccounts[account]?.publicKeys = [:] }
            serviceAccounts[account]?.publicKeys[posted.keyID] = key
        }
    }

    /// The number of APNs key revocations. Cached tokens are verified again when it changes.
    private(set) var revocations = 0

    /// Contradicting credentials of two apps.
    struct Conflict: Error, CustomStringConvertible { let description: String }
}

/// The public half of an APNs signing key.
struct APNsKey: Sendable {
    let keyID: String
    let teamID: String
    /// Usually one; two during a key rotation.
    fileprivate(set) var publicKeys: [P256.Signing.PublicKey]
    /// The bundle topics that the key may push to.
    var topics: Set<String>
    var environments: Set<ProviderEnvironment>

    init(
        keyID: String, teamID: String, publicKey: P256.Signing.PublicKey, topics: Set<String>,
        environments: Set<ProviderEnvironment>
    ) {
        self.keyID = keyID
        self.teamID = teamID
        publicKeys = [publicKey]
        self.topics = topics
        self.environments = environments
    }
}

/// A Google service account of one project.
struct ServiceAccount: Sendable {
    let email: String
    let project: String
    /// By key id.
    fileprivate(set) var publicKeys: [String: _RSA.Signing.PublicKey]

    init(email: String, keyID: String, project: String, publicKey: _RSA.Signing.PublicKey) {
        self.email = email
        self.project = project
        publicKeys = [keyID: publicKey]
    }
}
