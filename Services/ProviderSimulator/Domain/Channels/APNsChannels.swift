import FoundationEssentials
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
    static func text(of bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

    static func isText(_ text: String) -> Bool { !text.isEmpty && Data(base64Encoded: text) != nil }
}
