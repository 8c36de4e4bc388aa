/// Counts of a provider's requests, statuses and duplicate deliveries.
struct RequestTotals: Sendable, Hashable {
    /// The maximum number of messages tracked for duplicates, about 50 bytes each. Beyond it, a duplicate of an
    /// untracked message counts as new.
    static let maximumMessages = 2_000_000

    private(set) var requests = 0
    private(set) var delivered = 0
    /// Deliveries beyond the first of one message: the same `apns-id`, FCM body, or decrypted message of a browser.
    private(set) var duplicates = 0
    /// By status; 0 for requests without a response.
    private(set) var statuses: [Int: Int] = [:]
    private(set) var reasons: [String: Int] = [:]
    private(set) var faults: [String: Int] = [:]
    private var taken: Set<MessageFingerprint> = []

    /// The number of distinct messages delivered.
    var messages: Int { delivered - duplicates }

    mutating func count(_ entry: LoggedRequest) {
        let response = entry.response
        requests += 1
        statuses[response.status ?? 0, default: 0] += 1
        if let reason = response.reason { reasons[reason, default: 0] += 1 }
        if let fault = response.fault { faults[fault, default: 0] += 1 }
        guard response.isDelivered else { return }
        delivered += 1
        let print = MessageFingerprint(entry)
        if taken.count < Self.maximumMessages {
            if !taken.insert(print).inserted { duplicates += 1 }
        } else if taken.contains(print) {
            duplicates += 1
        }
    }

    func write(to writer: inout JSONWriter) {
        writer.member("count", requests)
        writer.member("delivered", delivered)
        writer.member("messages", messages)
        writer.member("duplicates", duplicates)
        writer.name("statuses")
        writer.object { writer in
            for (status, count) in statuses.sorted(by: { $0.key < $1.key }) { writer.member("\(status)", count) }
        }
        writer.counts("reasons", reasons)
        writer.counts("faults", faults)
    }
}

/// A 16-byte hash that identifies a message.
private struct MessageFingerprint: Hashable, Sendable {
    private let first: Int
    private let second: Int

    /// APNs messages have the sender's id. Others have none, so the content and the target are hashed.
    init(_ entry: LoggedRequest) {
        var hashers = (Hasher(), Hasher())
        hashers.1.combine(1 as UInt8)
        switch entry.provider {
        case .apns:
            let id = entry.response.messageID?.lowercased()
            hashers.0.combine(id)
            hashers.1.combine(id)
        case .fcm, .webpush, .oauth:
            hashers.0.combine(entry.response.target)
            hashers.1.combine(entry.response.target)
            entry.content.withUnsafeBytes { content in
                hashers.0.combine(bytes: content)
                hashers.1.combine(bytes: content)
            }
        }
        first = hashers.0.finalize()
        second = hashers.1.finalize()
    }
}

extension JSONWriter {
    /// Writes counts by name, sorted by name.
    mutating func counts(_ name: String, _ counts: [String: Int]) {
        self.name(name)
        object { writer in
            for (name, count) in counts.sorted(by: { $0.key < $1.key }) { writer.member(name, count) }
        }
    }
}
