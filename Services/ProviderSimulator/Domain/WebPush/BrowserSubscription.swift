import Crypto
import PushProtocol

/// A browser's push subscription at the simulated push service, with the browser's secrets.
struct BrowserSubscription: Sendable {
    /// The answer of the push service to requests for a subscription that ended.
    enum Ending: Int, Sendable, CaseIterable {
        case unknown = 404
        case gone = 410
    }

    /// The last part of the endpoint. The control API and the log name it `token`.
    let id: String
    /// The push service: `https://host`, with the port if it is not 443.
    let origin: String
    /// The VAPID key that the page subscribed with: 65 bytes (RFC 8292 §4.1).
    let serverKey: [UInt8]
    /// The app with that key in the catalog.
    let app: String?
    /// When the browser lets the subscription expire.
    let expiresAt: Timestamp?
    let privateKey: P256.KeyAgreement.PrivateKey
    /// 16 bytes (RFC 8291 §3.2).
    let authSecret: [UInt8]

    var endpoint: String { "\(origin)/\(id)" }

    /// Draws the id, and secrets unless they are given.
    init(
        origin: String, serverKey: [UInt8], app: String? = nil, expiresAt: Timestamp? = nil,
        privateKey: P256.KeyAgreement.PrivateKey = P256.KeyAgreement.PrivateKey(), authSecret: [UInt8] = random(16)
    ) {
        self.origin = origin
        self.serverKey = serverKey
        self.app = app
        self.expiresAt = expiresAt
        self.privateKey = privateKey
        self.authSecret = authSecret
        id = Base64URL.text(of: Self.random(24))
    }

    static func random(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }

    /// Writes `PushSubscription.toJSON()` and the members `token` and `privateKey`, with which tests decrypt the log.
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("endpoint", endpoint)
            writer.name("expirationTime")
            writer.value(expiresAt.map { .int($0.milliseconds) } ?? .null)
            writer.name("keys")
            writer.object { writer in
                writer.member("p256dh", Base64URL.text(of: privateKey.publicKey.x963Representation))
                writer.member("auth", Base64URL.text(of: authSecret))
            }
            writer.member("token", id)
            writer.member("privateKey", Base64URL.text(of: privateKey.rawRepresentation))
        }
    }
}
