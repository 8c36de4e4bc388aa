package import FoundationEssentials
package import PushProtocol
import Crypto

/// Encrypts device tokens before they are stored, and decrypts stored ones.
///
/// The stored text is `v1 KEY BASE64`: the version, the id of the key, and nonce, ciphertext and tag of AES-256-GCM. No device
/// token contains a space, so a text without this prefix is a token in clear. The device id and the app are authenticated, so
/// a stored text counts in its own row only.
///
/// The nonce is an HMAC of row and token. A token that is registered again has the same nonce and the same text, so the
/// number of nonces grows with the number of tokens and not with the number of registrations. Equal texts reveal equal tokens;
/// so do equal device ids, which follow from the token.
package struct TokenCipher: Sendable {
    /// Why a stored text has no token.
    package enum Fault: Error, Hashable, Sendable {
        /// The key of this id is not in the file.
        case unknownKey(String)
        /// The text was changed, belongs to another row, or the file has other bytes under this id.
        case notAuthentic(key: String)
        case malformed

        /// A word for metrics.
        package var word: String {
            switch self {
            case .unknownKey: "key-unknown"
            case .notAuthentic: "not-authentic"
            case .malformed: "malformed"
            }
        }
    }

    /// The label of tokens in clear, which is no key's id.
    package static let plain = "plain"
    /// Writes and reads tokens in clear, and opens nothing.
    package static let none = TokenCipher(writing: plain, keys: [:])

    /// The id of the key that new texts are written with, or ``plain``.
    package let writing: String
    private let keys: [String: Key]
    private let writer: Key?

    /// - Parameter keys: 32 bytes each, by id.
    init(writing: String, keys: [String: [UInt8]]) {
        self.writing = writing
        self.keys = keys.mapValues(Key.init)
        writer = self.keys[writing]
    }

    /// The ids of all keys.
    package var ids: Set<String> { Set(keys.keys) }

    /// The text to store in the row of `device`.
    package func seal(_ token: DeviceToken, device: UUID, app: AppID) -> String {
        guard let writer else { return token.secret }
        return "\(Self.version)\(writing) \(writer.seal(Self.packed(token.secret), Self.row(device, app)))"
    }

    /// The token in a stored text.
    package func open(_ stored: String, device: UUID, app: AppID) throws(Fault) -> DeviceToken {
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

    /// Whether the text is a sealed one.
    package static func isSealed(_ stored: String) -> Bool { stored.utf8.starts(with: version.utf8) }

    /// The beginning of every text under the key `id`; without an id, of every sealed text.
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
    /// A token as it is stored, once for each row that it may be stored in.
    package struct Sealed: Hashable, Sendable {
        /// For the row that follows from token and environment.
        package var stored: String
        /// For the row in the other environment, where a correction may have moved an APNs registration.
        package var moved: String?
    }

    /// Seals the token of a registration, whose device id is `device`.
    package func seal(
        _ token: DeviceToken, device: UUID, app: AppID, provider: Provider, environment: ProviderEnvironment
    ) -> Sealed {
        let stored = seal(token, device: device, app: app)
        guard writer != nil, provider == .apns else { return Sealed(stored: stored) }
        let other: ProviderEnvironment = environment == .production ? .development : .production
        let moved = DerivedID.device(app: app, provider: provider, environment: other, token: token)
        return Sealed(stored: stored, moved: seal(token, device: moved, app: app))
    }
}

extension TokenCipher {
    /// A constant that the registry seals in the database, so that `pushctl` finds out whether it has the same key.
    package enum Proof {
        package static let device = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        package static let app = AppID(rawValue: "proof")!
        package static let token = DeviceToken(secret: "proof")
    }
}

// MARK: - The two keys

extension TokenCipher {
    /// One key of the file, from which two are derived: for encryption and for nonces.
    private struct Key {
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
                // Only sizes that are fixed here can be wrong.
                preconditionFailure("AES-GCM refuses a key of 32 bytes and a nonce of 12: \(error)")
            }
        }

        func open(_ box: Data, _ row: [UInt8]) -> Data? {
            guard let box = try? AES.GCM.SealedBox(combined: box) else { return nil }
            return try? AES.GCM.open(box, using: encryption, authenticating: row)
        }
    }
}

// MARK: - What is encrypted

extension TokenCipher {
    private static let asText: UInt8 = 0
    private static let asHexadecimal: UInt8 = 1

    /// One byte that says how, then the token. Lower-case hexadecimal takes half the space: APNs tokens are that.
    private static func packed(_ token: String) -> [UInt8] {
        let text = Array(token.utf8)
        var bytes = [asHexadecimal]
        bytes.reserveCapacity(text.count + 1)
        var place = 0
        while place + 1 < text.count, let high = value(ofDigit: text[place]),
            let low = value(ofDigit: text[place + 1])
        {
            bytes.append(high << 4 | low)
            place += 2
        }
        return place == text.count ? bytes : [asText] + text
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
