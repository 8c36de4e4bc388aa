import PushProtocol

/// One phone on the wall with its latest deliveries, parsed when the wall is read.
struct WallPhone: Sendable {
    /// The maximum number of deliveries kept for a phone.
    static let maximumDeliveries = 24

    let id: Phone.ID
    private(set) var delivered = 0
    private(set) var refused = 0
    /// The number of the last request, delivered or rejected.
    private(set) var sequence = 0
    /// The number of this phone's last change.
    private(set) var change = 0
    /// Oldest first.
    private var deliveries: [LoggedRequest] = []

    init(_ id: Phone.ID) { self.id = id }

    /// Requests may arrive out of log order, because connections have separate threads.
    mutating func record(_ entry: LoggedRequest, change: Int) {
        sequence = max(sequence, entry.sequence)
        self.change = change
        guard entry.response.isDelivered else {
            refused += 1
            return
        }
        delivered += 1
        if deliveries.count == Self.maximumDeliveries { deliveries.removeFirst() }
        let place = deliveries.lastIndex { $0.sequence < entry.sequence }.map { $0 + 1 } ?? 0
        deliveries.insert(entry, at: place)
    }

    /// A notification on the screen, and the number of earlier ones it replaced.
    struct Card: Sendable {
        let sequence: Int
        let app: String?
        var shown: ShownNotification
        var replaced = 0
    }

    /// The notifications on the screen, newest first. A collapse id replaces an earlier notification; a silent push
    /// replaces nothing. All updates of a Live Activity share one card.
    var cards: [Card] {
        struct Key: Hashable {
            let app: String?
            let text: String
        }
        var cards: [Card] = []
        var places: [Key: Int] = [:]
        for entry in deliveries.reversed() {
            guard let shown = ShownNotification(entry) else { continue }
            let text = shown.activity != nil ? "activity" : shown.collapseID.map { "collapse \($0)" }
            if let text, !shown.isSilent {
                let key = Key(app: Self.app(of: entry), text: text)
                if let place = places[key] {
                    cards[place].replaced += 1
                    continue
                }
                places[key] = cards.count
            }
            cards.append(Card(sequence: entry.sequence, app: Self.app(of: entry), shown: shown))
        }
        return cards
    }

    /// The FCM project, or the bundle id without the suffix of the push type.
    private static func app(of entry: LoggedRequest) -> String? {
        entry.provider == .apns ? entry.response.app.map { APNsTopic($0, among: []).bundle } : entry.response.app
    }

    func write(to writer: inout JSONWriter) {
        let cards = cards
        let platform: ShownNotification.Platform =
            cards.first?.shown.platform ?? (id.provider == .apns ? .ios : .android)
        writer.object { writer in
            writer.member("provider", id.provider.rawValue)
            writer.member("token", id.token)
            writer.member("platform", platform.rawValue)
            writer.member("app", deliveries.last.flatMap(Self.app))
            writer.member("environment", deliveries.last?.environment.rawValue)
            writer.member("delivered", delivered)
            writer.member("refused", refused)
            // The newest badge value; 0 clears it.
            writer.member("badge", cards.lazy.compactMap(\.shown.badge).first)
            writer.member("sequence", sequence)
            writer.member("change", change)
            writer.name("notifications")
            writer.array(cards) { $1.write(to: &$0) }
        }
    }
}

extension WallPhone.Card {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("sequence", sequence)
            writer.member("app", app)
            writer.member("replaced", replaced)
            shown.writeMembers(to: &writer)
        }
    }
}
