import Crypto
import CryptoExtras
import FoundationEssentials
import PushProtocol
import ServiceKit

extension KnownApps {
    /// Loads the public half of every credential in the catalog.
    init(_ catalog: AppCatalog) throws(ConfigurationError) {
        self.init()
        for app in catalog.apps { try add(app) }
    }

    /// Loads the public half of the app's credentials.
    mutating func add(_ app: AppConfiguration) throws(ConfigurationError) {
        if let apns = app.apns {
            // Client certificates are verified by their issuer, so only the topic is needed.
            if case .key(let key) = apns.credential { try add(APNsKey(key, of: apns), of: app.id) }
            certifiedTopics.insert(apns.topic)
        }
        if let fcm = app.fcm { add(try ServiceAccount(file: fcm.serviceAccountFile)) }
        if let webPush = app.webPush { add(vapidKey: try Self.vapidKey(file: webPush.keyFile), of: app.id.rawValue) }
    }

    /// Reads the public half of a VAPID private key: 32 bytes in base64url.
    private static func vapidKey(file: String) throws(ConfigurationError) -> [UInt8] {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8),
            let bytes = Base64URL.bytes(of: text.filter { !$0.isWhitespace }),
            let key = try? P256.Signing.PrivateKey(rawRepresentation: bytes)
        else { throw ConfigurationError("\(file): is not a P-256 private key in base64url") }
        return Array(key.publicKey.x963Representation)
    }

    private mutating func add(_ key: APNsKey, of app: AppID) throws(ConfigurationError) {
        do throws(Conflict) {
            try add(key)
        } catch {
            throw ConfigurationError("HELIOGRAPH_APPS: \(app): \(error)")
        }
    }
}

extension AcceptedKeys {
    /// Accepts the credentials of a new app. Adds nothing if they contradict another app's.
    func add(_ app: AppConfiguration) throws(ConfigurationError) {
        try withApps { (apps: inout KnownApps) throws(ConfigurationError) in
            var extended = apps
            try extended.add(app)
            apps = extended
        }
    }
}

extension APNsKey {
    fileprivate init(_ key: APNsSigningKey, of app: APNsAppConfiguration) throws(ConfigurationError) {
        guard let pem = try? String(contentsOfFile: key.keyFile, encoding: .utf8),
            let privateKey = try? P256.Signing.PrivateKey(pemRepresentation: pem)
        else { throw ConfigurationError("\(key.keyFile): is not a P-256 private key in PEM (.p8)") }
        self.init(
            keyID: key.keyID, teamID: key.teamID, publicKey: privateKey.publicKey, topics: [app.topic],
            environments: app.environments)
    }
}

extension ServiceAccount {
    /// Reads the JSON key file of a Google service account.
    fileprivate init(file: String) throws(ConfigurationError) {
        guard let data = try? Data(contentsOf: URL(filePath: file)), let account = try? ProviderJSON.value(of: data)
        else {
            throw ConfigurationError("\(file): is not a service account's JSON key")
        }
        func member(_ name: String) throws(ConfigurationError) -> String {
            guard let text = account[name]?.string else {
                throw ConfigurationError("\(file): \(name) is missing or not a string")
            }
            return text
        }
        let pem = try member("private_key")
        guard let key = try? _RSA.Signing.PrivateKey(pemRepresentation: pem) else {
            throw ConfigurationError("\(file): private_key is not an RSA private key of at least 2048 bits in PEM")
        }
        self.init(
            email: try member("client_email"), keyID: try member("private_key_id"), project: try member("project_id"),
            publicKey: key.publicKey)
    }
}
