import PushProtocol

/// A device, identified by its token, with its request counts.
struct Phone: Sendable {
    struct ID: Hashable, Sendable {
        let provider: ProviderKind
        let token: String
    }

    let id: ID
    private(set) var delivered = 0
    private(set) var refused = 0
    private(set) var last: LoggedRequest?
    /// The number of the last request, delivered or rejected.
    private(set) var lastSequence = 0

    init(_ id: ID) { self.id = id }

    mutating func record(_ entry: LoggedRequest) {
        lastSequence = entry.sequence
        if entry.response.isDelivered {
            delivered += 1
            last = entry
        } else {
            refused += 1
        }
    }

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("provider", id.provider.rawValue)
            writer.member("token", id.token)
            writer.member("app", last?.response.app)
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
