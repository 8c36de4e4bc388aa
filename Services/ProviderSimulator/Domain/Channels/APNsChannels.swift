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
    /// The tokens of the phones whose Live Activity follows a channel, by channel.
    private let followers = Mutex<[String: Set<String>]>([:])

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
        followers.withLock { $0[id] = nil }
        return channels.withLock { $0[bundle]?.removeValue(forKey: id) != nil }
    }

    /// Notes that a phone started a Live Activity with a channel. Without such a channel, nothing reaches the activity.
    func follow(_ id: String, by token: String, for bundle: String) {
        guard policy(of: id, for: bundle) != nil else { return }
        _ = followers.withLock { $0[id, default: []].insert(token) }
    }

    /// The phones that a broadcast reaches.
    ///
    /// - Parameter isEnd: whether it ends their activities, so that they follow the channel no longer.
    func followers(of id: String, isEnd: Bool) -> [String] {
        followers.withLock { followers in
            let reached = followers[id, default: []].sorted()
            if isEnd { followers[id] = nil }
            return reached
        }
    }

    func all(of bundle: String) -> [String] { channels.withLock { $0[bundle, default: [:]].keys.sorted() } }
}

/// Base64 with padding (RFC 4648 §4), the form of channel ids.
enum Base64 {
    static func text(of bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

    static func isText(_ text: String) -> Bool { !text.isEmpty && Data(base64Encoded: text) != nil }
}
