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
    /// replaces nothing. All updates of a Live Activity share one card. A clear command removes earlier notifications and
    /// has no card.
    var cards: [Card] { screen.cards }

    /// The screen, the number of notifications that clear commands removed from it, and the newest badge. The badge of a
    /// removed notification stays.
    private var screen: (cards: [Card], cleared: Int, badge: Int64?) {
        struct Key: Hashable {
            let app: String?
            let text: String
        }
        var cards: [Card] = []
        var cleared: Set<Key> = []
        var removed: Set<Key> = []
        var badge: Int64?
        var places: [Key: Int] = [:]
        for entry in deliveries.reversed() {
            guard let shown = ShownNotification(entry) else { continue }
            badge = badge ?? shown.badge
            let ids = shown.clearedIDs.map { Key(app: Self.app(of: entry), text: "collapse \($0)") }
            guard ids.isEmpty else {
                cleared.formUnion(ids)
                // A later notification with the id did not replace those that the command removed.
                for id in ids { places[id] = nil }
                continue
            }
            let text = shown.activity != nil ? "activity" : shown.collapseID.map { "collapse \($0)" }
            if let text, !shown.isSilent {
                let key = Key(app: Self.app(of: entry), text: text)
                guard !cleared.contains(key) else {
                    removed.insert(key)
                    continue
                }
                if let place = places[key] {
                    cards[place].replaced += 1
                    continue
                }
                places[key] = cards.count
            }
            cards.append(Card(sequence: entry.sequence, app: Self.app(of: entry), shown: shown))
        }
        return (cards, removed.count, badge)
    }

    /// Writes the copies that the phone shows: visible notifications, newest first.
    func writeShown(to writer: inout JSONWriter) {
        let screen = screen
        writer.member("provider", id.provider.rawValue)
        writer.member("token", id.token)
        writer.name("shown")
        writer.array(screen.cards.filter(\.isVisible)) { $1.write(to: &$0) }
        writer.member("cleared", screen.cleared)
    }

    /// The FCM project, the app of a subscription, or the bundle id without the suffix of the push type.
    private static func app(of entry: LoggedRequest) -> String? {
        entry.provider == .apns ? entry.response.app.map { APNsTopic($0, among: []).bundle } : entry.response.app
    }

    func write(to writer: inout JSONWriter) {
        let (cards, cleared, badge) = screen
        let platform: ShownNotification.Platform =
            cards.first?.shown.platform ?? id.provider.platform
        writer.object { writer in
            writer.member("provider", id.provider.rawValue)
            writer.member("token", id.token)
            writer.member("platform", platform.rawValue)
            writer.member("app", deliveries.last.flatMap(Self.app))
            writer.member("environment", deliveries.last?.environment.rawValue)
            writer.member("delivered", delivered)
            writer.member("refused", refused)
            writer.member("cleared", cleared)
            // The newest badge value; 0 clears it.
            writer.member("badge", badge)
            writer.member("sequence", sequence)
            writer.member("change", change)
            writer.name("notifications")
            writer.array(cards) { $1.write(to: &$0) }
        }
    }
}

extension ProviderKind {
    /// The platform of a phone that shows nothing.
    fileprivate var platform: ShownNotification.Platform {
        switch self {
        case .apns: .ios
        case .fcm, .oauth: .android
        case .webpush: .browser
        }
    }
}

extension WallPhone.Card {
    /// Whether the screen shows it. A push with only a badge changes the icon.
    fileprivate var isVisible: Bool {
        !shown.isSilent && (shown.title != nil || shown.subtitle != nil || shown.body != nil || shown.activity != nil)
    }

    fileprivate func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("sequence", sequence)
            writer.member("app", app)
            writer.member("replaced", replaced)
            shown.writeMembers(to: &writer)
        }
    }
}
