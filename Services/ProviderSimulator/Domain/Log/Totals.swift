/// How many requests a provider got, how it answered them, and what it took twice.
struct Totals: Sendable, Hashable {
    /// Messages that are told apart when counting duplicates: beyond that a duplicate of a message that was not kept
    /// counts as new. At some 50 bytes each.
    static let maximumMessages = 2_000_000

    private(set) var requests = 0
    private(set) var delivered = 0
    /// Pushes taken beyond the first of the same message: the same `apns-id` of APNs, the same body of FCM.
    private(set) var duplicates = 0
    /// By status; requests that got no answer stand under 0.
    private(set) var statuses: [Int: Int] = [:]
    private(set) var reasons: [String: Int] = [:]
    private(set) var faults: [String: Int] = [:]
    private var taken: Set<MessagePrint> = []

    /// How many different messages were taken.
    var messages: Int { delivered - duplicates }

    mutating func count(_ entry: LoggedRequest) {
        let verdict = entry.verdict
        requests += 1
        statuses[verdict.status ?? 0, default: 0] += 1
        if let reason = verdict.reason { reasons[reason, default: 0] += 1 }
        if let fault = verdict.fault { faults[fault, default: 0] += 1 }
        guard verdict.isDelivered else { return }
        delivered += 1
        let print = MessagePrint(entry)
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

/// What tells one message from another, in 16 bytes instead of its text.
private struct MessagePrint: Hashable, Sendable {
    private let first: Int
    private let second: Int

    /// APNs has the sender's id. FCM has none: there it is the whole body, its target in it.
    init(_ entry: LoggedRequest) {
        var hashers = (Hasher(), Hasher())
        hashers.1.combine(1 as UInt8)
        switch entry.party {
        case .apns:
            let id = entry.verdict.messageID?.lowercased()
            hashers.0.combine(id)
            hashers.1.combine(id)
        case .fcm, .oauth:
            entry.request.body.withUnsafeBytes { body in
                hashers.0.combine(bytes: body)
                hashers.1.combine(bytes: body)
            }
        }
        first = hashers.0.finalize()
        second = hashers.1.finalize()
    }
}

extension JSONWriter {
    /// A member that counts by name, the names in order.
    mutating func counts(_ name: String, _ counts: [String: Int]) {
        self.name(name)
        object { writer in
            for (name, count) in counts.sorted(by: { $0.key < $1.key }) { writer.member(name, count) }
        }
    }
}
