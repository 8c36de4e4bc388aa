import Crypto
import CryptoExtras
import PushProtocol

/// The credentials the simulator accepts: the public halves of what the senders sign with.
struct KnownApps: Sendable {
    /// By key id.
    private(set) var apnsKeys: [String: APNsKey] = [:]
    /// By the account's e-mail address, which is the `iss` of its assertions.
    private(set) var serviceAccounts: [String: ServiceAccount] = [:]
    /// Every FCM project that exists.
    private(set) var projects: Set<String> = []

    /// Adds a key; the same key may serve several apps of a team.
    mutating func add(_ key: APNsKey) throws(Conflict) {
        guard let known = apnsKeys[key.keyID] else {
            apnsKeys[key.keyID] = key
            return
        }
        guard known.teamID == key.teamID,
            known.publicKeys.map(\.rawRepresentation) == key.publicKeys.map(\.rawRepresentation)
        else {
            throw Conflict(description: "the key id \(key.keyID) is used for two different keys or teams")
        }
        apnsKeys[key.keyID]?.topics.formUnion(key.topics)
        apnsKeys[key.keyID]?.environments.formUnion(key.environments)
    }

    /// Every bundle topic that exists.
    var topics: Set<String> { apnsKeys.values.reduce(into: certifiedTopics) { $0.formUnion($1.topics) } }
    /// Those that are known whether or not a key is for them.
    var certifiedTopics: Set<String> = []

    mutating func add(_ account: ServiceAccount) {
        serviceAccounts[account.email] = account
        projects.insert(account.project)
    }

    /// Takes another key of an account that is known, as Google's console adds one.
    mutating func add(_ key: RotatedKey.Google, revokesOthers: Bool) throws(Unknown) {
        guard serviceAccounts[key.account] != nil else { throw Unknown(name: key.account) }
        if revokesOthers { serviceAccounts[key.account]?.publicKeys = [:] }
        serviceAccounts[key.account]?.publicKeys[key.keyID] = key.publicKey
    }

    /// Takes another key under a key id that is known. Apple would give it an id of its own; a catalog names one.
    mutating func add(_ key: RotatedKey.APNs, revokesOthers: Bool) throws(Unknown) {
        guard apnsKeys[key.keyID] != nil else { throw Unknown(name: key.keyID) }
        if revokesOthers {
            apnsKeys[key.keyID]?.publicKeys = []
            revocations += 1
        }
        apnsKeys[key.keyID]?.publicKeys.append(key.publicKey)
    }

    /// How often a key of APNs was revoked: what was signed with one has to be verified again.
    private(set) var revocations = 0

    /// A key id or an account that no app of the catalog names.
    struct Unknown: Error, Hashable { let name: String }

    /// Two apps that cannot both be right.
    struct Conflict: Error, CustomStringConvertible { let description: String }
}

/// An APNs signing key, its public half.
struct APNsKey: Sendable {
    let keyID: String
    let teamID: String
    /// Usually one: the former one too while keys are being exchanged.
    fileprivate(set) var publicKeys: [P256.Signing.PublicKey]
    /// The bundle topics it may push to.
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

/// A Google service account that may send for one project.
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
