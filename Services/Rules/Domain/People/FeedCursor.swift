import FoundationEssentials
import PushProtocol
import RuleEngine
import RuleLanguage

/// A position in the inbox feed, which is ordered by transaction id. Later entries never sort before an earlier one.
struct FeedCursor: Hashable, Comparable, Sendable {
    /// The id of the transaction that wrote the entry.
    var transaction: UInt64
    var id: UUID

    /// The position before all entries of a transaction.
    init(before transaction: UInt64) {
        self.transaction = transaction
        id = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    }

    init(transaction: UInt64, id: UUID) {
        self.transaction = transaction
        self.id = id
    }

    /// Parses ``text``; `nil` for any other string.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "_", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let transaction = UInt64(parts[0]), let id = UUID(uuidString: String(parts[1])) else {
            return nil
        }
        self.init(transaction: transaction, id: id)
    }

    /// The order of the table: by transaction, then by the bytes of the id.
    static func < (a: FeedCursor, b: FeedCursor) -> Bool {
        a.transaction == b.transaction ? a.id < b.id : a.transaction < b.transaction
    }

    /// The cursor as an opaque text for clients.
    var text: String { "\(transaction)_\(id.uuidString.lowercased())" }
}

extension DecisionEngine {
    /// Whether an open app shows a banner for a new notification.
    ///
    /// Returns `false` if the user is viewing the thread, has muted the notification or has switched off banners. A
    /// critical notification always has a banner.
    func isShown(_ input: DecisionInput, to person: Person) -> Bool {
        if defaults.isCritical(input.policy) { return true }
        guard person.settings.isOn, person.settings.allows(.banner),
            unwanted(input, person.settings, by: .banner) == nil
        else {
            return false
        }
        return input.thread.map { !person.isViewing($0, now) } ?? true
    }
}
