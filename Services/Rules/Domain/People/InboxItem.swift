import FoundationEssentials
import PushProtocol
import RuleLanguage

struct InboxItem: Sendable {
    /// The notification's id; the push has the same id.
    var id: UUID
    var at: Timestamp
    var readAt: Timestamp?
    var rendered: RenderedNotification

    /// The item's position in its inbox.
    var place: Place { Place(at: at, id: id) }

    /// A position in an inbox, which is ordered by time, newest first.
    struct Place: Hashable, Sendable {
        var at: Timestamp
        var id: UUID

        init(at: Timestamp, id: UUID) {
            self.at = at
            self.id = id
        }

        /// Parses ``text``; `nil` for any other string.
        init?(_ text: some StringProtocol) {
            let parts = text.split(separator: "_", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0].utf8.count <= 15, let at = Int64(parts[0]), at >= 0,
                let id = UUID(uuidString: String(parts[1]))
            else { return nil }
            self.init(at: Timestamp(milliseconds: at), id: id)
        }

        /// The position as an opaque text for clients.
        var text: String { "\(at.milliseconds)_\(id.uuidString.lowercased())" }
    }
}

extension InboxItem {
    /// - Parameter type: the ``PreferenceType`` of its rule; `nil` if the rule file no longer has it.
    func json(type: String?) -> JSONValue {
        let content = rendered.content
        return [
            "id": .string(id.uuidString.lowercased()),
            "at": .string(RFC3339.string(from: at.date)),
            "read_at": .optional(readAt.map { RFC3339.string(from: $0.date) }),
            "rule": .string(rendered.rule),
            "type": .optional(type),
            "title": .optional(content.title),
            "subtitle": .optional(content.subtitle),
            "body": .optional(content.body),
            "image": .optional(content.image),
            "deep_link": .optional(content.deepLink),
            "category": .optional(content.category),
            "thread": .optional(content.thread),
            "data": .object(content.data ?? [:]),
        ]
    }
}
