import Primitives
import Yams

extension RuleFileReader {
    /// Reads the entries of `done` with `receipt`: a user's receipt completes the item for this user.
    func doneByReceipts(_ field: Field, _ rules: [Rule]) -> [DoneByReceipt] {
        guard case .sequence(let sequence) = field.node else { return [] }
        return sequence.enumerated().compactMap { index, node in
            let entry = self.field(node, "\(field.path).\(index)", line: node.mark?.line ?? field.line)
            return entry.isAboutReceipt ? doneByReceipt(entry, rules) : nil
        }
    }

    private func doneByReceipt(_ field: Field, _ rules: [Rule]) -> DoneByReceipt? {
        guard let table = table(field, keys: ["receipt", "rules"], required: ["receipt"]),
            let words = table["receipt"].flatMap(oneOrMore)
        else { return nil }
        let actions = words.compactMap { choice($0) as ReceiptAction? }
        guard let named = table["rules"].flatMap(oneOrMore) else {
            if !rules.contains(where: \.hasItemReceipts) {
                report(field, "no rule has policy.item, so no receipt is about an item; add an item to a rule")
            }
            return DoneByReceipt(actions: Set(actions))
        }
        return DoneByReceipt(actions: Set(actions), rules: Set(named.compactMap { ruleWithItem($0, rules) }))
    }

    private func ruleWithItem(_ field: Field, _ rules: [Rule]) -> String? {
        guard let name = text(field) else { return nil }
        guard let rule = rules.first(where: { $0.name == name }) else {
            let hint = NearestMatch.of(name, among: rules.map(\.name)).map { "; did you mean “\($0)”?" } ?? ""
            // A rule with a mistake is not in the list; its mistake is reported.
            if problems.isEmpty { report(field, "there is no rule “\(name)”\(hint)") }
            return nil
        }
        if rule.policy.item == nil {
            report(field, "“\(name)” has no policy.item that a receipt could complete; add an item")
        } else if rule.policy.digestsAll {
            report(field, "“\(name)” sends digests; a receipt of a digest is not about one item")
        }
        return name
    }
}

extension Rule {
    /// Whether receipts of its notifications are about one item.
    fileprivate var hasItemReceipts: Bool { policy.item != nil && !policy.digestsAll }
}

extension Field {
    /// Whether an entry of `done` names a receipt, and not an event.
    var isAboutReceipt: Bool { node.mapping?.keys.contains { $0.scalar?.string == "receipt" } ?? false }
}
