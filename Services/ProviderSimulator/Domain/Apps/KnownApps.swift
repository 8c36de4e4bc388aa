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
        guard known.teamID == key.teamID, known.publicKey.rawRepresentation == key.publicKey.rawRepresentation else {
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

    /// Two apps that cannot both be right.
    struct Conflict: Error, CustomStringConvertible { let description: String }
}

/// An APNs signing key, its public half.
struct APNsKey: Sendable {
    let keyID: String
    let teamID: String
    let publicKey: P256.Signing.PublicKey
    /// The bundle topics it may push to.
    var topics: Set<String>
    var environments: Set<ProviderEnvironment>
}

/// A Google service account that may send for one project.
struct ServiceAccount: Sendable {
    let email: String
    let keyID: String
    let project: String
    let publicKey: _RSA.Signing.PublicKey
}
