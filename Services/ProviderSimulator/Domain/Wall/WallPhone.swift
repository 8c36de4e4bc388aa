import PushProtocol

/// One phone on the wall: what it got last, kept as it came and read when someone looks.
struct WallPhone: Sendable {
    /// Deliveries that are kept for a phone: more than its screen holds.
    static let maximumDeliveries = 24

    let id: Phone.ID
    private(set) var delivered = 0
    private(set) var refused = 0
    /// The number of the last request, whatever became of it.
    private(set) var sequence = 0
    /// The number of the last change of the wall that was one of this phone.
    private(set) var change = 0
    /// Oldest first.
    private var deliveries: [LoggedRequest] = []

    init(_ id: Phone.ID) { self.id = id }

    /// Requests may come here in another order than they came to the log in, as their connections have threads of their own.
    mutating func record(_ entry: LoggedRequest, change: Int) {
        sequence = max(sequence, entry.sequence)
        self.change = change
        guard entry.verdict.isDelivered else {
            refused += 1
            return
        }
        delivered += 1
        if deliveries.count == Self.maximumDeliveries { deliveries.removeFirst() }
        let place = deliveries.lastIndex { $0.sequence < entry.sequence }.map { $0 + 1 } ?? 0
        deliveries.insert(entry, at: place)
    }

    /// A notification on the screen, and how many earlier ones it replaced.
    struct Card: Sendable {
        let sequence: Int
        let app: String?
        var shown: ShownNotification
        var replaced = 0
    }

    /// What is on the screen, newest first. A notification with the collapse id of an earlier one stands in its stead; a
    /// silent push replaces nothing. A Live Activity is one card, whatever its updates are called.
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

    /// The project, or the bundle id without what the push type adds to it.
    private static func app(of entry: LoggedRequest) -> String? {
        entry.party == .apns ? entry.verdict.app.map { APNsTopic($0, among: []).bundle } : entry.verdict.app
    }

    func write(to writer: inout JSONWriter) {
        let cards = cards
        let platform: ShownNotification.Platform =
            cards.first?.shown.platform ?? (id.party == .apns ? .ios : .android)
        writer.object { writer in
            writer.member("provider", id.party.rawValue)
            writer.member("token", id.token)
            writer.member("platform", platform.rawValue)
            writer.member("app", deliveries.last.flatMap(Self.app))
            writer.member("environment", deliveries.last?.environment.rawValue)
            writer.member("delivered", delivered)
            writer.member("refused", refused)
            // The newest that says something about the badge; 0 clears it.
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
