import Crypto

/// An API key for a server or an operator: `hgk_`, a public id and 256 random bits. Secret scanners find keys by the
/// prefix.
///
///     hgk_4k7v0q2m9x1c_8d5f…(64 hexadecimal digits)
///
/// Only its SHA-256 is stored. A 256-bit random key cannot be guessed, so a slow, salted hash would add cost without
/// security. It prints as `‹redacted›`; ``secret`` is the text.
package struct APIKey: Hashable, Sendable {
    /// The length of the public id.
    package static let idLength = 12
    private static let prefix = "hgk_"
    private static let alphabet = Array("0123456789abcdefghijklmnopqrstuvwxyz".utf8)

    /// The public id, for look-ups and logs: 12 of `a–z`, `0–9`.
    package let id: String
    /// The whole key. Never log or store it.
    package let secret: String

    /// Generates a key. There are 36¹² ids.
    package init(using random: inout some RandomNumberGenerator) {
        let id = (0..<Self.idLength).map { _ in Self.alphabet[Int.random(in: 0..<36, using: &random)] }
        self.id = String(decoding: id, as: UTF8.self)
        let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }
        secret = "\(Self.prefix)\(self.id)_\(bytes.withUnsafeBytes { Hexadecimal.text(of: $0) })"
    }

    /// Parses a key; `nil` for any other text.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        let start = Self.prefix.utf8.count
        let end = start + Self.idLength
        guard bytes.count == end + 1 + 64, bytes.starts(with: Self.prefix.utf8), bytes[end] == UInt8(ascii: "_"),
            bytes[start..<end].allSatisfy(Self.alphabet.contains), bytes[(end + 1)...].allSatisfy(Self.isDigit)
        else { return nil }
        id = String(decoding: bytes[start..<end], as: UTF8.self)
        secret = text
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// The SHA-256 of the whole key, for storage.
    package var digest: [UInt8] { Array(SHA256.hash(data: Array(secret.utf8))) }

    /// Returns whether `digest` is this key's digest, in constant time.
    package func matches(digest: [UInt8]) -> Bool { SHA256.hash(data: Array(secret.utf8)) == digest }

    /// An operation that a key may be granted.
    package enum Operation: String, CaseIterable, Sendable, Codable {
        /// Read devices, with masked tokens.
        case readDevices = "devices:read"
        /// Register an app's devices and sign users out; for the app's backend.
        case registerDevices = "devices:register"
        /// Deactivate registrations.
        case deactivateDevices = "devices:deactivate"
        /// Erase users.
        case eraseUsers = "users:erase"
        /// Read counts of devices, and of notifications by rule.
        case readCounts = "counts:read"
        /// Read decisions about users and their reasons.
        case readEvents = "events:read"
        /// Read the preferences of an app's users; for the app's backend.
        case readPreferences = "preferences:read"
        /// Change the preferences of an app's users; for the app's backend.
        case writePreferences = "preferences:write"
        /// Publish an app's events over HTTP.
        case publishEvents = "events:publish"
        /// Send notifications whose text the caller words.
        case sendNotifications = "notifications:send"
        /// Take back an app's notifications before they are shown.
        case revokeNotifications = "notifications:revoke"
    }
}

extension APIKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "‹redacted›" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
