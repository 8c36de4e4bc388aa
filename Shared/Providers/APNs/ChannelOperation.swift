package import PushProtocol

/// Management of an app's APNs broadcast channels: requests and responses (Apple: Sending channel management requests
/// to APNs).
package enum ChannelOperation: Hashable, Sendable {
    case create(Storage)
    case read(channel: String)
    case delete(channel: String)
    case list

    /// The storage policy for offline devices.
    package enum Storage: String, CaseIterable, Sendable {
        case none
        /// The most recent message, for at most eight hours.
        case mostRecent = "most-recent"

        package var policy: Int64 {
            switch self {
            case .none: 0
            case .mostRecent: 1
            }
        }
    }

    package var method: String {
        switch self {
        case .create: "POST"
        case .read, .list: "GET"
        case .delete: "DELETE"
        }
    }

    package func path(bundle: String) -> String {
        switch self {
        case .create, .read, .delete: "/1/apps/\(bundle)/channels"
        case .list: "/1/apps/\(bundle)/all-channels"
        }
    }

    /// APNs takes the channel id in a header.
    package var headers: [(name: String, value: String)] {
        switch self {
        case .read(let channel), .delete(let channel): [("apns-channel-id", channel)]
        case .create, .list: []
        }
    }

    package func body() throws(WireError) -> [UInt8] {
        guard case .create(let storage) = self else { return [] }
        let body: JSONValue = ["message-storage-policy": .int(storage.policy), "push-type": "LiveActivity"]
        return try WireCoding.encode(body)
    }
}
