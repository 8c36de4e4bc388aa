/// A user's receipt of a notification.
package enum ReceiptAction: String, Hashable, Sendable, CaseIterable {
    /// Tapped, or viewed in the app.
    case opened
    case dismissed
}

/// Receipts that complete the item of their notification for the user who sent them: an entry of `done` with `receipt`.
package struct DoneByReceipt: Hashable, Sendable {
    package var actions: Set<ReceiptAction>
    /// The rules whose notifications count; `nil`: all rules with an item.
    package var rules: Set<String>?

    package func includes(_ action: ReceiptAction, of rule: String) -> Bool {
        actions.contains(action) && (rules?.contains(rule) ?? true)
    }
}

extension RuleSet {
    /// Whether a receipt of a rule's notification completes the notification's item.
    package func isDone(by action: ReceiptAction, of rule: String) -> Bool {
        doneByReceipts.contains { $0.includes(action, of: rule) }
    }
}
