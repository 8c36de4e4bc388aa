/// Who talks to the broker, each with its own credential.
package enum BusRole: String, Sendable, CaseIterable {
    /// The only one that may declare; used by `pushctl topology apply` alone.
    case topology
    case rules
    case tokenRegistry = "token-registry"
    case apnsSender = "apns-sender"
    case fcmSender = "fcm-sender"
    case feedback
    /// An upstream service; its topic permission further holds it to its own app's routing keys. It publishes events
    /// only: a device command names its app in its body, where the broker cannot hold a publisher to it.
    case upstream
}

/// RabbitMQ's three regular expressions for one user.
package struct BusPermissions: Hashable, Sendable {
    package var configure: String
    package var write: String
    package var read: String

    package init(configure: String, write: String, read: String) {
        self.configure = configure
        self.write = write
        self.read = read
    }
}

extension BusRole {
    /// The least this role needs. Nobody may write to the default exchange: that would be every queue.
    package var permissions: BusPermissions {
        switch self {
        case .topology: BusPermissions(configure: ".*", write: ".*", read: ".*")
        case .rules: stage(writes: ["notifications"], reads: #"rules\.(events|outcomes|erasures)"#)
        case .tokenRegistry:
            stage(
                writes: ["pushes", "outcomes", "devices"],
                reads: #"token-registry\.(devices|campaigns|notifications\.(interactive|bulk))"#)
        case .apnsSender: sender(.apns)
        case .fcmSender: sender(.fcm)
        case .feedback: stage(writes: ["devices"], reads: #"feedback\.(outcomes|erasures)"#)
        case .upstream: BusPermissions(configure: "^$", write: "^events$", read: "^$")
        }
    }

    private func sender(_ provider: Provider) -> BusPermissions {
        stage(
            writes: ["outcomes", "marks"],
            reads: #"(\#(provider.rawValue)-sender\.pushes\.(interactive|bulk)\.[a-z0-9-]+|senders\.revocations)"#)
    }

    private func stage(writes exchanges: [String], reads: String) -> BusPermissions {
        let write = (exchanges + ["dead", #"retry\.[0-9a-z]+"#]).joined(separator: "|")
        return BusPermissions(configure: "^$", write: "^(\(write))$", read: "^\(reads)$")
    }
}
