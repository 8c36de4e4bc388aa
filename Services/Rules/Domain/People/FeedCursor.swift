import FoundationEssentials
import PushProtocol

/// A place in the news of an inbox, which is ordered by when it was written, so that nothing comes to stand before it later.
struct FeedCursor: Hashable, Sendable {
    /// The number of the transaction that wrote it.
    var transaction: UInt64
    var id: UUID

    /// Before everything that the transaction wrote.
    init(before transaction: UInt64) {
        self.transaction = transaction
        id = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    }

    init(transaction: UInt64, id: UUID) {
        self.transaction = transaction
        self.id = id
    }

    /// As ``text`` wrote it; `nil` for anything else.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "_", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let transaction = UInt64(parts[0]), let id = UUID(uuidString: String(parts[1])) else {
            return nil
        }
        self.init(transaction: transaction, id: id)
    }

    /// For clients, who hand it back as it is.
    var text: String { "\(transaction)_\(id.uuidString.lowercased())" }
}

extension DecisionEngine {
    /// Whether an app that is open shows what was just said: not where its person has the very thread on the screen, has
    /// muted what it is about, or wants no banners.
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
