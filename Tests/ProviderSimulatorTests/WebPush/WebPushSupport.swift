import Crypto
import Foundation
import PushProtocol

@testable import ProviderSimulator

/// A page that subscribed, and a sender that makes any mistake. Shares no code with webpush-sender.
struct PageUnderTest {
    static let origin = "https://push.example:9446"

    let simulator = Fixture.simulator()
    let serverKey = P256.Signing.PrivateKey()
    let subscription: BrowserSubscription

    init(expiresAt: Timestamp? = nil) {
        subscription = BrowserSubscription(
            origin: Self.origin, serverKey: Array(serverKey.publicKey.x963Representation), app: "family-portal",
            expiresAt: expiresAt)
        simulator.state.subscriptions.insert(subscription)
    }

    /// A JWT for the push service, changed by `change`.
    func token(
        key: P256.Signing.PrivateKey? = nil, algorithm: String = "ES256",
        _ change: (inout [String: JSONValue]) -> Void = { _ in }
    ) -> String {
        var claims: [String: JSONValue] = [
            "aud": .string(Self.origin), "exp": .int(Fixture.now.seconds + 43_200), "sub": "mailto:ops@example.com",
        ]
        change(&claims)
        return Signing.es256(["alg": .string(algorithm), "typ": "JWT"], .object(claims), key: key ?? serverKey)
    }

    func authorization(_ token: String? = nil, k: String? = nil) -> String {
        let key = Base64URL.text(of: serverKey.publicKey.x963Representation)
        return "vapid t=\(token ?? self.token()), k=\(k ?? key)"
    }

    /// A request with a message, with changed headers; `nil` removes one.
    func request(
        _ message: String = #"{"web_push":8030,"notification":{"title":"T","navigate":"https://a.example/"}}"#,
        path: String? = nil, method: String = "POST", body: [UInt8]? = nil, at: Timestamp = Fixture.now,
        with changes: [String: String?] = [:]
    ) throws -> ProviderRequest {
        var headers: [String: String?] = [
            "authorization": authorization(), "ttl": "60", "content-encoding": "aes128gcm", "urgency": "high",
        ]
        headers.merge(changes) { $1 }
        return ProviderRequest(
            connection: 1, stream: 1, method: method, path: path ?? "/\(subscription.id)",
            headers: headers.compactMap { name, value in value.map { Header(name, $0) } },
            body: try body ?? encrypt(Array(message.utf8)), receivedAt: at)
    }

    func push(
        _ message: String = #"{"web_push":8030,"notification":{"title":"T","navigate":"https://a.example/"}}"#,
        path: String? = nil, method: String = "POST", body: [UInt8]? = nil, at: Timestamp = Fixture.now,
        with changes: [String: String?] = [:]
    ) throws -> ReceivedResponse? {
        ReceivedResponse(
            simulator.respondWebPush(
                try request(message, path: path, method: method, body: body, at: at, with: changes)))
    }

    /// The latest log entry.
    var logged: LoggedRequest? { simulator.log.requests(of: .webpush).last }

    /// Encrypts a message (RFC 8291).
    func encrypt(
        _ message: [UInt8], delimiter: UInt8 = 2, padding: Int = 0, authSecret: [UInt8]? = nil,
        recordSize: UInt32 = 4096
    ) throws -> [UInt8] {
        let key = P256.KeyAgreement.PrivateKey()
        let ours = Array(key.publicKey.x963Representation)
        let theirs = subscription.privateKey.publicKey
        let salt = BrowserSubscription.random(16)
        let keying = try key.sharedSecretFromKeyAgreement(with: theirs).hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: authSecret ?? subscription.authSecret,
            sharedInfo: Array("WebPush: info\0".utf8) + theirs.x963Representation + ours, outputByteCount: 32)
        func derive(_ info: String, _ count: Int) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: keying, salt: salt, info: Array(info.utf8), outputByteCount: count)
        }
        let nonce = derive("Content-Encoding: nonce\0", 12).withUnsafeBytes { Array($0) }
        let box = try AES.GCM.seal(
            message + [delimiter] + [UInt8](repeating: 0, count: padding),
            using: derive("Content-Encoding: aes128gcm\0", 16), nonce: AES.GCM.Nonce(data: nonce))
        return salt + withUnsafeBytes(of: recordSize.bigEndian, Array.init) + [65] + ours + box.ciphertext + box.tag
    }
}
