import Crypto
import FoundationEssentials

/// Decrypts a message as the browser does (RFC 8291 with the content coding of RFC 8188).
///
/// Shares no code with the sender, so that a mistake in one of them shows.
struct MessageDecryption: Sendable {
    struct Failure: Error, Hashable, Sendable {
        let problem: String

        init(_ problem: String) { self.problem = problem }
    }

    private static let headerLength = 16 + 4 + 1 + 65
    private static let tagLength = 16

    private let salt: [UInt8]
    private let senderKey: P256.KeyAgreement.PublicKey
    private let record: [UInt8]

    /// Reads the header of the coding, which a push service can check too.
    init(_ body: [UInt8]) throws(Failure) {
        guard body.count >= Self.headerLength else { throw Failure("it is shorter than the header of aes128gcm") }
        let recordSize = body[16..<20].reduce(0) { $0 << 8 | Int($1) }
        guard body[20] == 65 else { throw Failure("its keyid is not an uncompressed P-256 point of 65 bytes") }
        guard let key = try? P256.KeyAgreement.PublicKey(x963Representation: body[21..<Self.headerLength]) else {
            throw Failure("its keyid is not a point of the curve P-256")
        }
        // A single record (RFC 8291 §4): no longer than the record size.
        record = Array(body[Self.headerLength...])
        guard recordSize >= 18, record.count <= recordSize else {
            throw Failure("it has more than one record of \(recordSize) bytes")
        }
        salt = Array(body[..<16])
        senderKey = key
    }

    /// Returns the message without its padding.
    func message(for subscription: BrowserSubscription) throws(Failure) -> [UInt8] {
        guard let padded = try? decrypted(for: subscription) else {
            throw Failure("the subscription's keys do not decrypt it")
        }
        // The last record ends with the delimiter 2 and zeros (RFC 8188 §2).
        guard let delimiter = padded.lastIndex(where: { $0 != 0 }), padded[delimiter] == 2 else {
            throw Failure("its last record has no delimiter 2")
        }
        return Array(padded[..<delimiter])
    }

    private func decrypted(for subscription: BrowserSubscription) throws -> [UInt8] {
        let ours = subscription.privateKey.publicKey.x963Representation
        let secret = try subscription.privateKey.sharedSecretFromKeyAgreement(with: senderKey)
        let keying = secret.hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: subscription.authSecret,
            sharedInfo: Array("WebPush: info\0".utf8) + ours + senderKey.x963Representation, outputByteCount: 32)
        let key = derive(keying, "Content-Encoding: aes128gcm\0", 16)
        let nonce = derive(keying, "Content-Encoding: nonce\0", 12).withUnsafeBytes { Array($0) }
        let box = try AES.GCM.SealedBox(
            nonce: AES.GCM.Nonce(data: nonce), ciphertext: record.dropLast(Self.tagLength),
            tag: record.suffix(Self.tagLength))
        return Array(try AES.GCM.open(box, using: key))
    }

    private func derive(_ key: SymmetricKey, _ info: String, _ length: Int) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: key, salt: salt, info: Array(info.utf8), outputByteCount: length)
    }
}
