import FoundationEssentials
import PushProtocol
import RuleEngine
import RuleLanguage

/// A receipt in the events of a dry run: a user opened or dismissed the last notification of a rule.
struct DryRunReceipt {
    let person: PersonKey
    let rule: String
    let action: ReceiptAction

    /// - Parameter value: `{"user": "7", "rule": "review", "what": "opened"}`.
    init(_ value: JSONValue, app: String) throws {
        guard let app = AppID(rawValue: app), let user = value["user"]?.userID else {
            throw DryRunFiles.Problem(description: "the receipt has no “user”")
        }
        guard let rule = value["rule"]?.string else {
            throw DryRunFiles.Problem(description: "the receipt has no “rule”")
        }
        guard let action = value["what"]?.string.flatMap(ReceiptAction.init(rawValue:)) else {
            throw DryRunFiles.Problem(description: "“what” of a receipt is opened or dismissed")
        }
        person = PersonKey(app: app, user: user)
        self.rule = rule
        self.action = action
    }
}

extension DryRunFiles.Happening {
    /// The time of an event that has one.
    var time: Timestamp? {
        switch self {
        case .event(let event): event.time.map(Timestamp.init)
        case .receipt: nil
        }
    }
}

extension DryRun {
    /// Processes an event or a receipt, after everything that is due before it.
    mutating func process(_ one: DryRunFiles.Recorded) {
        switch one.happening {
        case .event(let event): process(event, at: one.at)
        case .receipt(let receipt): process(receipt, at: one.at)
        }
    }

    /// Marks the last pushed or kept notification of the rule as opened, and completes its item where the rules say so.
    private mutating func process(_ receipt: DryRunReceipt, at now: Timestamp) {
        advance(to: now)
        let told = predictions.last { prediction in
            prediction.app == receipt.person.app && prediction.user == receipt.person.user
                && prediction.rule == receipt.rule && (prediction.notification != nil || prediction.kept != nil)
        }
        guard let told, let id = told.id else {
            refusals.append(
                RefusedEvent(
                    at: now, event: "-",
                    reason:
                        "the receipt is of no notification: \(receipt.rule) has notified \(receipt.person.user) of nothing"
                ))
            return
        }
        if receipt.action == .opened { keepUnread(receipt.person, now) { $0.notification != id } }
        guard ruleSets.ruleSets[receipt.person.app]?.isDone(by: receipt.action, of: receipt.rule) == true,
            let item = about[id]?.item
        else { return }
        let key = ItemState.UserItem(item: item, user: receipt.person.user)
        doneByUser[key] = max(doneByUser[key] ?? now, now)
        takeBack(item, of: receipt.person.user, until: now, .done, now)
    }
}
