import PushProtocol

/// Who would hear more, less, later or something else by other rules.
struct RehearsalDifference: Hashable, Sendable {
    enum Kind: String, Hashable, Sendable, CaseIterable { case more, less, later, earlier, otherwise }

    var kind: Kind
    var old: Rehearsal.Telling?
    var new: Rehearsal.Telling?

    /// What is pushed by one and not by the other, or at another time, or in other words; by person and event.
    static func between(_ old: [Rehearsal.Telling], _ new: [Rehearsal.Telling]) -> [RehearsalDifference] {
        struct Key: Hashable {
            var app: AppID
            var user: UserID
            var event: String
            var rule: String
            /// A digest may tell of the same event on several days.
            var number: Int
        }
        func pushes(_ tellings: [Rehearsal.Telling]) -> (order: [Key], pushes: [Key: Rehearsal.Telling]) {
            var order: [Key] = []
            var pushes: [Key: Rehearsal.Telling] = [:]
            for telling in tellings where telling.content != nil {
                var key = Key(
                    app: telling.app, user: telling.user, event: telling.event, rule: telling.rule, number: 0)
                while pushes[key] != nil { key.number += 1 }
                pushes[key] = telling
                order.append(key)
            }
            return (order, pushes)
        }
        let (oldOrder, old) = pushes(old)
        let (newOrder, new) = pushes(new)
        var differences: [RehearsalDifference] = []
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
            differences.append(RehearsalDifference(kind: kind, old: old[key], new: new[key]))
        }
        return differences
    }
}
