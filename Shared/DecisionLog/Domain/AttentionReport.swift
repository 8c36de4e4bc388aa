package import FoundationEssentials
import Primitives
package import PushProtocol

/// The notifications that the users of an app got on each day, and the rules that sent them.
package struct AttentionReport: Hashable, Sendable {
    package var app: String
    package var from: Date
    package var until: Date
    /// The notifications a day that the app promises at most; `nil` without a promise.
    package var promise: Int?
    package var days: Days
    /// The rules with the most notifications first.
    package var rules: [Rule]
    /// The users with the most days over the promise first, then those with the most notifications in a day.
    package var users: [User]

    /// The days of users with at least one notification.
    package struct Days: Hashable, Sendable {
        package var notifications: Int
        package var users: Int
        /// Notifications of a user on one day: the median, the 90th and 99th percentile, and the maximum.
        package var median: Int
        package var ninety: Int
        package var ninetyNine: Int
        package var maximum: Int
        /// Users with more notifications than promised on any day, and the number of such days of all users.
        package var usersOver: Int
        package var daysOver: Int

        package init(
            notifications: Int = 0, users: Int = 0, median: Int = 0, ninety: Int = 0, ninetyNine: Int = 0,
            maximum: Int = 0, usersOver: Int = 0, daysOver: Int = 0
        ) {
            self.notifications = notifications
            self.users = users
            self.median = median
            self.ninety = ninety
            self.ninetyNine = ninetyNine
            self.maximum = maximum
            self.usersOver = usersOver
            self.daysOver = daysOver
        }
    }

    package struct Rule: Hashable, Sendable {
        package var name: String
        package var notifications: Int
        package var users: Int
        /// Its notifications on days of users with more than promised.
        package var over: Int

        package init(name: String, notifications: Int, users: Int, over: Int) {
            self.name = name
            self.notifications = notifications
            self.users = users
            self.over = over
        }
    }

    package struct User: Hashable, Sendable {
        package var id: String
        package var notifications: Int
        /// The notifications on the day with the most.
        package var most: Int
        package var daysOver: Int

        package init(id: String, notifications: Int, most: Int, daysOver: Int) {
            self.id = id
            self.notifications = notifications
            self.most = most
            self.daysOver = daysOver
        }
    }

    package init(
        app: String, from: Date, until: Date, promise: Int?, days: Days, rules: [Rule], users: [User]
    ) {
        self.app = app
        self.from = from
        self.until = until
        self.promise = promise
        self.days = days
        self.rules = rules
        self.users = users
    }
}

// MARK: - Output

extension AttentionReport {
    package var json: JSONValue {
        var members: [String: JSONValue] = [
            "app": .string(app), "from": .string(RFC3339.string(from: from)),
            "until": .string(RFC3339.string(from: until)), "promise": promise.map { .int(Int64($0)) } ?? .null,
            "notifications": .int(Int64(days.notifications)), "users": .int(Int64(days.users)),
            "a_day": [
                "median": .int(Int64(days.median)), "p90": .int(Int64(days.ninety)),
                "p99": .int(Int64(days.ninetyNine)), "maximum": .int(Int64(days.maximum)),
            ],
            "rules": .array(rules.map { json(of: $0) }), "most_notified": .array(users.map { json(of: $0) }),
        ]
        if promise != nil {
            members["over"] = ["users": .int(Int64(days.usersOver)), "days": .int(Int64(days.daysOver))]
        }
        return .object(members)
    }

    private func json(of rule: Rule) -> JSONValue {
        var members: [String: JSONValue] = [
            "rule": .string(rule.name), "notifications": .int(Int64(rule.notifications)),
            "users": .int(Int64(rule.users)),
        ]
        if promise != nil { members["over"] = .int(Int64(rule.over)) }
        return .object(members)
    }

    private func json(of user: User) -> JSONValue {
        var members: [String: JSONValue] = [
            "user": .string(user.id), "notifications": .int(Int64(user.notifications)),
            "most_in_a_day": .int(Int64(user.most)),
        ]
        if promise != nil { members["days_over"] = .int(Int64(user.daysOver)) }
        return .object(members)
    }

    /// Sentences about the days, a table of the rules, and a table of the users.
    package var lines: [String] {
        let (start, end) = (RFC3339.string(from: from), RFC3339.string(from: until))
        guard days.notifications > 0 else { return ["no notifications between \(start) and \(end)"] }
        var lines = [
            "\(days.notifications) notifications to \(days.users) users between \(start) and \(end)",
            "A user with any gets \(days.median) on a day (median), \(days.ninety) (90 %), \(days.ninetyNine) (99 %), "
                + "at most \(days.maximum).",
        ]
        if let promise {
            lines.append(
                "The app promises at most \(promise) a day: \(days.usersOver) users got more, on \(days.daysOver) days."
            )
        }
        let over = promise == nil ? [] : ["over the promise"]
        var table = TextTable(
            [.left("rule")] + (["notifications", "share", "users"] + over).map(TextTable.Column.right))
        for rule in rules {
            let share = Int((Double(rule.notifications) * 100 / Double(days.notifications)).rounded())
            let cells = ["\(rule.notifications)", "\(share) %", "\(rule.users)"]
            table.add([rule.name] + cells + (promise == nil ? [] : ["\(rule.over)"]))
        }
        lines += [""] + table.lines()
        let daysOver = promise == nil ? [] : ["days over the promise"]
        var people = TextTable(
            [.left("user")] + (["notifications", "most in a day"] + daysOver).map(TextTable.Column.right))
        for user in users {
            people.add(
                [user.id, "\(user.notifications)", "\(user.most)"] + (promise == nil ? [] : ["\(user.daysOver)"]))
        }
        return lines + [""] + people.lines()
    }
}
