import Crypto
import FoundationEssentials

/// The content coding `aes128gcm` with a single record (RFC 8188). Web Push forbids several (RFC 8291 §4).
enum ContentCoding {
    /// The salt's length in bytes.
    static let saltLength = 16
    private static let tagLength = 16
    private static let delimiter: UInt8 = 2

    /// The bytes that the header, the delimiter and the tag add to the plaintext.
    static func overhead(keyID count: Int) -> Int { saltLength + 4 + 1 + count + 1 + tagLength }

    /// Encrypts `plaintext` as one record.
    ///
    /// - Parameters:
    ///   - plaintext: the content; shorter than `recordSize` by at least 17 bytes.
    ///   - padding: the number of zeros added, which the recipient removes.
    ///   - key: the input keying material, 16 bytes or more.
    ///   - salt: 16 random bytes, never used twice with a key.
    ///   - keyID: up to 255 bytes, for the recipient.
    ///   - recordSize: the size in the header. The record may be shorter.
    static func encrypt(
        _ plaintext: [UInt8], padding: Int = 0, key: SymmetricKey, salt: [UInt8], keyID: [UInt8] = [],
        recordSize: UInt32 = 4096
    ) throws -> [UInt8] {
        precondition(salt.count == saltLength && keyID.count <= 255)
        precondition(plaintext.count + padding + 1 + tagLength <= Int(recordSize))
        let cipherKey = derive(key, salt, "Content-Encoding: aes128gcm", length: 16)
        // The nonce of the first record: its sequence number is 0.
        let nonce = derive(key, salt, "Content-Encoding: nonce", length: 12)
        var record = plaintext
        record.reserveCapacity(plaintext.count + padding + 1)
        record.append(delimiter)
        record.append(contentsOf: repeatElement(0, count: padding))
        let sealed = try nonce.withUnsafeBytes { nonce in
            try AES.GCM.seal(record, using: cipherKey, nonce: AES.GCM.Nonce(data: nonce))
        }
        var body: [UInt8] = []
        body.reserveCapacity(record.count + overhead(keyID: keyID.count))
        body += salt
        body += withUnsafeBytes(of: recordSize.bigEndian) { Array($0) }
        body.append(UInt8(keyID.count))
        body += keyID
        body += sealed.ciphertext
        body += sealed.tag
        return body
    }

    private static func derive(_ key: SymmetricKey, _ salt: [UInt8], _ info: String, length: Int) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: key, salt: salt, info: Array(info.utf8) + [0], outputByteCount: length)
    }
}
