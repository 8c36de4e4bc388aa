import Crypto
import FoundationEssentials

/// Encrypts messages for one subscription (RFC 8291).
package enum WebPushEncryption {
    /// The secrets of one message. Each message needs new ones.
    package struct MessageSecrets: Sendable {
        let salt: [UInt8]
        let privateKey: P256.KeyAgreement.PrivateKey

        /// Draws new secrets from the system's generator.
        package init() {
            var generator = SystemRandomNumberGenerator()
            salt = (0..<ContentCoding.saltLength).map { _ in UInt8.random(in: 0...255, using: &generator) }
            privateKey = P256.KeyAgreement.PrivateKey()
        }

        /// Takes known secrets, for test vectors.
        init(salt: [UInt8], privateKey: P256.KeyAgreement.PrivateKey) {
            self.salt = salt
            self.privateKey = privateKey
        }
    }

    /// The maximum size of a body that every push service accepts (RFC 8030 §7.2).
    package static let maximumBody = 4096
    /// The maximum size of a message, in bytes (RFC 8291 §4).
    package static let maximumMessage = maximumBody - ContentCoding.overhead(keyID: 65)
    /// The size of most padded messages. Firefox for Android takes no larger ones (ProviderFacts.md §F.2).
    package static let commonMessage = 2820

    /// The size to which a message is padded. There are two, so its length reveals only whether the message is long.
    ///
    /// - Returns: `nil` for a message that no push service has to accept.
    package static func paddedSize(of message: Int) -> Int? {
        if message <= commonMessage { return commonMessage }
        return message <= maximumMessage ? maximumMessage : nil
    }

    /// Returns the body of the request: the message, padded and encrypted for `subscription`.
    ///
    /// - Throws: A rejection of a message that is too large.
    package static func encrypt(
        _ message: [UInt8], for subscription: WebPushSubscription, with secrets: MessageSecrets = MessageSecrets()
    ) throws(LocalRejection) -> [UInt8] {
        guard let size = paddedSize(of: message.count) else { throw LocalRejection("payload-too-large") }
        return try encrypt(message, padding: size - message.count, for: subscription, with: secrets)
    }

    static func encrypt(
        _ message: [UInt8], padding: Int, for subscription: WebPushSubscription, with secrets: MessageSecrets
    ) throws(LocalRejection) -> [UInt8] {
        let ours = Array(secrets.privateKey.publicKey.x963Representation)
        do {
            let theirs = try P256.KeyAgreement.PublicKey(x963Representation: subscription.publicKey)
            let shared = try secrets.privateKey.sharedSecretFromKeyAgreement(with: theirs)
            let key = shared.hkdfDerivedSymmetricKey(
                using: SHA256.self, salt: subscription.authSecret,
                sharedInfo: Array("WebPush: info".utf8) + [0] + subscription.publicKey + ours, outputByteCount: 32)
            return try ContentCoding.encrypt(message, padding: padding, key: key, salt: secrets.salt, keyID: ours)
        } catch {
            // The subscription's initializer checked its key.
            throw LocalRejection("not-encrypted", suspectToken: true)
        }
    }
}
