import Synchronization

/// The broadcast channels of one environment (ProviderFacts.md §A.11). Safe from any thread.
final class APNsChannels: Sendable {
    /// The storage policy for offline devices.
    enum StoragePolicy: Int64, Sendable {
        case none = 0
        case mostRecent = 1
    }

    /// Per app.
    static let maximumChannels = 10_000

    private let channels = Mutex<[String: [String: StoragePolicy]]>([:])

    /// Creates a channel; `nil` when the app has the maximum.
    func create(_ policy: StoragePolicy, for bundle: String) -> String? {
        let id = Base64.text(of: (0..<16).map { _ in UInt8.random(in: .min ... .max) })
        return channels.withLock { channels in
            guard channels[bundle, default: [:]].count < Self.maximumChannels else { return nil }
            channels[bundle, default: [:]][id] = policy
            return id
        }
    }

    func policy(of id: String, for bundle: String) -> StoragePolicy? { channels.withLock { $0[bundle]?[id] } }

    /// - Returns: whether the channel existed.
    func delete(_ id: String, for bundle: String) -> Bool {
        channels.withLock { $0[bundle]?.removeValue(forKey: id) != nil }
    }

    func all(of bundle: String) -> [String] { channels.withLock { $0[bundle, default: [:]].keys.sorted() } }
}

/// Base64 with padding (RFC 4648 §4), the form of channel ids.
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func text(of bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for place in 0..<4 {
                let index = Int(bits >> UInt32(18 - 6 * place)) & 0x3f
                text.append(place <= group.count ? alphabet[index] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    static func isText(_ text: String) -> Bool {
        let body = text.utf8.drop { $0 != UInt8(ascii: "=") }
        let padding = body.count
        guard !text.isEmpty, text.utf8.count % 4 == 0, padding <= 2, body.allSatisfy({ $0 == UInt8(ascii: "=") }) else {
            return false
        }
        return text.utf8.dropLast(padding).allSatisfy(alphabet.contains)
    }
}
