package import FoundationEssentials
package import PushProtocol
import Crypto

/// Encrypts device tokens for storage, and decrypts stored ones.
///
/// The stored text is `v1 KEY BASE64`: the version, the key's id, and nonce, ciphertext and tag of AES-256-GCM. No
/// device token contains a space, so a text without this prefix is a plaintext token. The device id and the app are
/// authenticated data, so a stored text is valid only in its own row.
///
/// The nonce is an HMAC of row and token. Registering a token again yields the same nonce and text, so the number of
/// nonces grows with the tokens, not with the registrations. Equal texts reveal equal tokens; so do equal device ids,
/// which are derived from the token.
package struct TokenCipher: Sendable {
    /// The reason for which a stored text cannot be decrypted.
    package enum DecryptionError: Error, Hashable, Sendable {
        /// The key file has no key with this id.
        case unknownKey(String)
        /// The text was changed or belongs to another row, or the key with this id differs.
        case notAuthentic(key: String)
        case malformed

        /// The value of the metric label `reason`.
        package var metricLabel: String {
            switch self {
            case .unknownKey: "key-unknown"
            case .notAuthentic: "not-authentic"
            case .malformed: "malformed"
            }
        }
    }

    /// The label of plaintext tokens; not allowed as a key id.
    package static let plain = "plain"
    /// A cipher without keys: stores plaintext tokens and decrypts nothing.
    package static let none = TokenCipher(writingKeyID: plain, keys: [:])

    /// The id of the key that encrypts new tokens, or ``plain``.
    package let writingKeyID: String
    private let keys: [String: DerivedKeys]
    private let writer: DerivedKeys?

    /// - Parameter keys: 32 bytes each, by id.
    init(writingKeyID: String, keys: [String: [UInt8]]) {
        self.writingKeyID = writingKeyID
        self.keys = keys.mapValues(DerivedKeys.init)
        writer = self.keys[writingKeyID]
    }

    package var ids: Set<String> { Set(keys.keys) }

    /// Returns the text to store in the row of `device`.
    package func seal(_ token: DeviceToken, device: UUID, app: AppID) -> String {
        guard let writer else { return token.secret }
        return "\(Self.version)\(writingKeyID) \(writer.seal(Self.packed(token.secret), Self.row(device, app)))"
    }

    package func open(_ stored: String, device: UUID, app: AppID) throws(DecryptionError) -> DeviceToken {
        guard Self.isSealed(stored) else { return DeviceToken(secret: stored) }
        let rest = stored.utf8.dropFirst(Self.version.utf8.count)
        guard let space = rest.firstIndex(of: UInt8(ascii: " ")), space > rest.startIndex else { throw .malformed }
        let id = String(stored[rest.startIndex..<space])
        guard let key = keys[id] else { throw .unknownKey(id) }
        let text = String(stored[rest.index(after: space)...])
        guard let box = Data(base64Encoded: text) else { throw .malformed }
        guard let packed = key.open(box, Self.row(device, app)) else { throw .notAuthentic(key: id) }
        guard let token = Self.unpacked(packed) else { throw .malformed }
        return DeviceToken(secret: token)
    }

    package static func isSealed(_ stored: String) -> Bool { stored.utf8.starts(with: version.utf8) }

    /// Returns the prefix of all texts encrypted with the key `id`; without an id, of all encrypted texts.
    package static func prefix(of id: String? = nil) -> String { id.map { "\(version)\($0) " } ?? version }

    private static let version = "v1 "

    private static func row(_ device: UUID, _ app: AppID) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(16 + app.rawValue.utf8.count)
        withUnsafeBytes(of: device.uuid) { text.append(contentsOf: $0) }
        text.append(contentsOf: app.rawValue.utf8)
        return text
    }
}

// MARK: - Tokens of registrations

extension TokenCipher {
    /// An encrypted token, for each row that may contain it.
    package struct SealedToken: Hashable, Sendable {
        /// The text for the row derived from token and environment.
        package var stored: String
        /// The text for the row of the other APNs environment, to which a correction may have moved the registration.
        package var moved: String?
    }

    /// Encrypts the token of a registration with the device id `device`.
    package func seal(
        _ token: DeviceToken, device: UUID, app: AppID, provider: Provider, environment: ProviderEnvironment
    ) -> SealedToken {
        let stored = seal(token, device: device, app: app)
        guard writer != nil, provider == .apns else { return SealedToken(stored: stored) }
        let other: ProviderEnvironment = environment == .production ? .development : .production
        let moved = DerivedID.device(app: app, provider: provider, environment: other, token: token)
        return SealedToken(stored: stored, moved: seal(token, device: moved, app: app))
    }
}

extension TokenCipher {
    /// A constant that the registry stores encrypted, so that `pushctl` can check that it has the same key.
    package enum KeyCheck {
        package static let device = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        package static let app = AppID(rawValue: "proof")!
        package static let token = DeviceToken(secret: "proof")
    }
}

// MARK: - Keys

extension TokenCipher {
    /// A key of the file, with the two keys derived from it (HKDF): for encryption and for nonces.
    private struct DerivedKeys {
        private let encryption: SymmetricKey
        private let nonces: SymmetricKey

        init(_ bytes: [UInt8]) {
            let key = SymmetricKey(data: bytes)
            func derived(_ purpose: String) -> SymmetricKey {
                HKDF<SHA256>.deriveKey(inputKeyMaterial: key, info: Array(purpose.utf8), outputByteCount: 32)
            }
            encryption = derived("heliograph token encryption")
            nonces = derived("heliograph token nonce")
        }

        func seal(_ plain: [UInt8], _ row: [UInt8]) -> String {
            var hash = HMAC<SHA256>(key: nonces)
            hash.update(data: [UInt8(truncatingIfNeeded: row.count)] + row)
            hash.update(data: plain)
            let nonce = Array(hash.finalize().prefix(12))
            do {
                let box = try AES.GCM.seal(
                    plain, using: encryption, nonce: AES.GCM.Nonce(data: nonce), authenticating: row)
                return (nonce + box.ciphertext + box.tag).base64EncodedString()
            } catch {
                // Fails only for wrong sizes, which are constant here.
                preconditionFailure("AES-GCM rejects a key of 32 bytes and a nonce of 12: \(error)")
            }
        }

        func open(_ box: Data, _ row: [UInt8]) -> Data? {
            guard let box = try? AES.GCM.SealedBox(combined: box) else { return nil }
            return try? AES.GCM.open(box, using: encryption, authenticating: row)
        }
    }
}

// MARK: - Plaintext encoding

extension TokenCipher {
    private static let asText: UInt8 = 0
    private static let asHexadecimal: UInt8 = 1

    /// Encodes a token as one byte for the encoding and the token. Lower-case hexadecimal (APNs tokens) takes half the
    /// space.
    private static func packed(_ token: String) -> [UInt8] {
        let text = Array(token.utf8)
        var bytes = [asHexadecimal]
        bytes.reserveCapacity(text.count + 1)
        var offset = 0
        while offset + 1 < text.count, let high = value(ofDigit: text[offset]),
            let low = value(ofDigit: text[offset + 1])
        {
            bytes.append(high << 4 | low)
            offset += 2
        }
        return offset == text.count ? bytes : [asText] + text
    }

    private static func unpacked(_ data: Data) -> String? {
        switch data.first {
        case asText: return String(validating: data.dropFirst(), as: UTF8.self)
        case asHexadecimal: return data.withUnsafeBytes { Hexadecimal.text(of: .init(rebasing: $0.dropFirst())) }
        default: return nil
        }
    }

    private static func value(ofDigit byte: UInt8) -> UInt8? {
        (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte) ? nil : Hexadecimal.value(byte)
    }
}

extension Array<UInt8> {
    fileprivate func base64EncodedString() -> String { Data(self).base64EncodedString() }
}
