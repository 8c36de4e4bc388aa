import PushProtocol

/// A push that two rule sets send differently.
struct DryRunDifference: Hashable, Sendable {
    enum Kind: String, Hashable, Sendable, CaseIterable { case more, less, later, earlier, otherwise }

    var kind: Kind
    var old: DryRun.PredictedDecision?
    var new: DryRun.PredictedDecision?

    /// Compares pushes by user, event and rule: sent by one side only, at another time, or with other content.
    static func between(_ old: [DryRun.PredictedDecision], _ new: [DryRun.PredictedDecision]) -> [DryRunDifference] {
        struct Key: Hashable {
            var app: AppID
            var user: UserID
            var event: String
            var rule: String
            /// Counts pushes with equal values, such as daily digests with the same event.
            var number: Int
        }
        func pushes(_ predictions: [DryRun.PredictedDecision]) -> (
            order: [Key], pushes: [Key: DryRun.PredictedDecision]
        ) {
            var order: [Key] = []
            var pushes: [Key: DryRun.PredictedDecision] = [:]
            for prediction in predictions where prediction.content != nil {
                var key = Key(
                    app: prediction.app, user: prediction.user, event: prediction.event, rule: prediction.rule,
                    number: 0)
                while pushes[key] != nil { key.number += 1 }
                pushes[key] = prediction
                order.append(key)
            }
            return (order, pushes)
        }
        let (oldOrder, old) = pushes(old)
        let (newOrder, new) = pushes(new)
        var differences: [DryRunDifference] = []
        for key in oldOrder + newOrder.filter({ old[$0] == nil }) {
            let kind: Kind
            switch (old[key], new[key]) {
            case (nil, _?): kind = .more
            case (_?, nil): kind = .less
            case (let before?, let after?) where before.at < after.at: kind = .later
            case (let before?, let after?) where before.at > after.at: kind = .earlier
            case (let before?, let after?) where before.content != after.content: kind = .otherwise
            case (nil, nil), (_?, _?): continue
            }
            differences.append(DryRunDifference(kind: kind, old: old[key], new: new[key]))
        }
        return differences
    }
}
