import Crypto

/// A key that a server or an operator calls with: `hgk_` (so that who scans for lost secrets finds it), an id that may be
/// known, and 256 random bits.
///
///     hgk_4k7v0q2m9x1c_8d5f…(64 hexadecimal digits)
///
/// What is kept of it is its SHA-256. Such a key cannot be guessed, so the slow, salted hashes that passwords need would
/// make nothing safer and every request dearer. It prints as `‹redacted›`; the text itself is ``secret``.
package struct APIKey: Hashable, Sendable {
    /// The length of the part that may be known.
    package static let idLength = 12
    private static let prefix = "hgk_"
    private static let alphabet = Array("0123456789abcdefghijklmnopqrstuvwxyz".utf8)

    /// What the key is looked up and talked about by: 12 of `a–z`, `0–9`.
    package let id: String
    /// The whole key. Never log it, and never keep it.
    package let secret: String

    /// Makes a key up. Two never have the same id by chance: there are 36¹² of them.
    package init(using random: inout some RandomNumberGenerator) {
        let id = (0..<Self.idLength).map { _ in Self.alphabet[Int.random(in: 0..<36, using: &random)] }
        self.id = String(decoding: id, as: UTF8.self)
        let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }
        secret = "\(Self.prefix)\(self.id)_\(bytes.withUnsafeBytes { Hexadecimal.text(of: $0) })"
    }

    /// Reads a key; `nil` for what has not the form of one.
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

    /// SHA-256 of the whole key: what is kept.
    package var digest: [UInt8] { Array(SHA256.hash(data: Array(secret.utf8))) }

    /// Whether this is the key whose digest was kept; in constant time.
    package func isKept(as digest: [UInt8]) -> Bool { SHA256.hash(data: Array(secret.utf8)) == digest }

    /// What a key may be used for.
    package enum Operation: String, CaseIterable, Sendable, Codable {
        /// See devices, their tokens masked.
        case readDevices = "devices:read"
        /// Register devices of an app's users, and sign users out of them: for the app's backend.
        case registerDevices = "devices:register"
        /// End registrations.
        case deactivateDevices = "devices:deactivate"
        /// Forget users.
        case eraseUsers = "users:erase"
        /// See how many devices there are, and how many notifications came of each rule.
        case readCounts = "counts:read"
        /// See what was decided about whom, and why.
        case readEvents = "events:read"
    }
}

extension APIKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "‹redacted›" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
