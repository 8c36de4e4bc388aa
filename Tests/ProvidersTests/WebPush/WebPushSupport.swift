import Crypto
import Foundation
import PushProtocol

@testable import Providers

/// A browser: its subscription, and its side of RFC 8291.
struct Browser {
    let key: P256.KeyAgreement.PrivateKey
    let auth: [UInt8]
    var endpoint = "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV?v=1"

    /// The browser of the vectors: the key's bytes are 1 to 32, those of the secret 100 to 115.
    static func sample() throws -> Browser {
        Browser(key: try P256.KeyAgreement.PrivateKey(rawRepresentation: Array(1...32)), auth: Array(100...115))
    }

    var json: JSONValue {
        [
            "endpoint": .string(endpoint), "expirationTime": nil,
            "keys": [
                "p256dh": .string(Base64URL.text(of: key.publicKey.x963Representation)),
                "auth": .string(Base64URL.text(of: auth)),
            ],
        ]
    }

    func subscription() throws -> WebPushSubscription { try WebPushSubscription(json) }

    struct NotDecrypted: Error {}

    /// Decrypts a body, and removes its padding.
    func decrypt(_ body: [UInt8]) throws -> [UInt8] {
        guard body.count > 86, body[16..<21] == [0, 0, 16, 0, 65] else { throw NotDecrypted() }
        let sender = Array(body[21..<86])
        let theirs = try P256.KeyAgreement.PublicKey(x963Representation: sender)
        let key = try key.sharedSecretFromKeyAgreement(with: theirs).hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: auth,
            sharedInfo: Array("WebPush: info\0".utf8) + Array(self.key.publicKey.x963Representation) + sender,
            outputByteCount: 32)
        func derive(_ info: String, _ count: Int) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: key, salt: Array(body[..<16]), info: Array(info.utf8), outputByteCount: count)
        }
        let nonce = derive("Content-Encoding: nonce\0", 12).withUnsafeBytes { Data($0) }
        let box = try AES.GCM.SealedBox(
            nonce: AES.GCM.Nonce(data: nonce), ciphertext: body[86..<(body.count - 16)], tag: body.suffix(16))
        let record = Array(try AES.GCM.open(box, using: derive("Content-Encoding: aes128gcm\0", 16)))
        guard let end = record.lastIndex(where: { $0 != 0 }), record[end] == 2 else { throw NotDecrypted() }
        return Array(record[..<end])
    }
}

extension WebPushEncryption.MessageSecrets {
    /// The secrets of the vectors: a salt of 0 to 15, and a key of 33 to 64.
    static func sample() throws -> WebPushEncryption.MessageSecrets {
        WebPushEncryption.MessageSecrets(
            salt: Array(0...15), privateKey: try P256.KeyAgreement.PrivateKey(rawRepresentation: Array(33...64)))
    }
}

/// The parts of the header `authorization` that ``VAPIDToken`` writes.
struct ReadAuthorization {
    let claims: JSONValue
    let header: JSONValue
    let publicKey: String
    let isValid: Bool

    struct Unreadable: Error {}

    init(_ text: String) throws {
        guard let match = text.wholeMatch(of: /vapid t=([^.]+)\.([^.]+)\.([^,]+), ?k=(.+)/),
            let header = Base64URL.bytes(of: String(match.1)), let claims = Base64URL.bytes(of: String(match.2)),
            let signature = Base64URL.bytes(of: String(match.3)), let key = Base64URL.bytes(of: String(match.4))
        else { throw Unreadable() }
        self.header = try WireCoding.decode(JSONValue.self, from: header)
        self.claims = try WireCoding.decode(JSONValue.self, from: claims)
        publicKey = String(match.4)
        isValid = try P256.Signing.PublicKey(x963Representation: key).isValidSignature(
            P256.Signing.ECDSASignature(rawRepresentation: signature), for: Array("\(match.1).\(match.2)".utf8))
    }
}
