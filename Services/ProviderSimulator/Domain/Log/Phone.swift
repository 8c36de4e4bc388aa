import PushProtocol

/// A device as the simulator knows it: by its token, from what was sent to it.
struct Phone: Sendable {
    struct ID: Hashable, Sendable {
        let party: Party
        let token: String
    }

    let id: ID
    private(set) var delivered = 0
    private(set) var refused = 0
    /// The last request a phone would have got something of.
    private(set) var last: LoggedRequest?
    /// The number of the last request, whatever became of it.
    private(set) var lastSequence = 0

    init(_ id: ID) { self.id = id }

    mutating func record(_ entry: LoggedRequest) {
        lastSequence = entry.sequence
        if entry.verdict.isDelivered {
            delivered += 1
            last = entry
        } else {
            refused += 1
        }
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("provider", id.party.rawValue)
            writer.member("token", id.token)
            writer.member("app", last?.verdict.app)
            writer.member("environment", last?.environment.rawValue)
            writer.member("delivered", delivered)
            writer.member("refused", refused)
            writer.name("last")
            if let shown = last.flatMap(ShownNotification.init) {
                shown.write(to: &writer)
            } else {
                writer.value(.null)
            }
        }
    }
}
