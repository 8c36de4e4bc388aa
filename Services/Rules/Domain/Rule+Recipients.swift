import PushProtocol

extension Rule {
    /// Who hears of it, in the order the event names them, each once. The first mention of a user counts.
    func recipients(_ scope: Scope) throws(PlacedProblem) -> [NotificationDraft.Recipient] {
        var recipients: [NotificationDraft.Recipient] = []
        var seen: Set<UserID> = []
        for (index, selector) in to.enumerated() {
            let place = to.count == 1 ? "to" : "to.\(index)"
            let excluded = try selector.excluded(scope, place: place)
            for recipient in try selector.named(scope, place: place) where !excluded.contains(recipient.user) {
                if seen.insert(recipient.user).inserted { recipients.append(recipient) }
            }
        }
        return recipients
    }
}

extension Rule.Selector {
    fileprivate func excluded(_ scope: Scope, place: String) throws(PlacedProblem) -> Set<UserID> {
        var users: Set<UserID> = []
        for path in except {
            let place = "\(place).except"
            switch scope[path] {
            case nil: throw PlacedProblem(place, .missing(path: path))
            case .null: continue
            case .array(let elements):
                for (index, element) in elements.enumerated() {
                    users.insert(try user(element, at: "\(path).\(index)", place: place))
                }
            case .some(let value): users.insert(try user(value, at: path, place: place))
            }
        }
        return users
    }

    fileprivate func named(_ scope: Scope, place: String) throws(PlacedProblem) -> [NotificationDraft.Recipient] {
        switch scope[users] {
        case nil: throw PlacedProblem("\(place).users", .missing(path: users))
        case .null: throw PlacedProblem("\(place).users", .null(path: users))
        case .array(let elements):
            var recipients: [NotificationDraft.Recipient] = []
            for (index, element) in elements.enumerated() {
                if let found = try recipient(element, at: "\(users).\(index)", place: place) {
                    recipients.append(found)
                }
            }
            return recipients
        case .some(let value): return try recipient(value, at: users, place: place).map { [$0] } ?? []
        }
    }

    /// The user that one element names, or `nil` for one that does not match.
    private func recipient(
        _ element: JSONValue, at path: String, place: String
    ) throws(PlacedProblem) -> NotificationDraft.Recipient? {
        guard let id else {
            return NotificationDraft.Recipient(user: try user(element, at: path, place: "\(place).users"), badge: nil)
        }
        guard case .object = element else {
            throw PlacedProblem("\(place).users", .unsuitable(path: path, expected: "an object"))
        }
        if let matching, !matching.matches(element) { return nil }
        guard let value = element[path: id] else {
            throw PlacedProblem("\(place).id", .missing(path: "\(path).\(id)"))
        }
        let user = try user(value, at: "\(path).\(id)", place: "\(place).id")
        return NotificationDraft.Recipient(user: user, badge: try badge(of: element, at: path, place: place))
    }

    private func badge(of element: JSONValue, at path: String, place: String) throws(PlacedProblem) -> Int? {
        guard let badge else { return nil }
        let place = "\(place).badge"
        guard let value = element[path: badge] else {
            throw PlacedProblem(place, .missing(path: "\(path).\(badge)"))
        }
        if value == .null { return nil }
        guard let number = value.badgeNumber else {
            throw PlacedProblem(place, .unsuitable(path: "\(path).\(badge)", expected: JSONValue.badgeExpectation))
        }
        return number
    }

    /// A user id: a text, or a number, which many upstreams count their users with.
    private func user(_ value: JSONValue, at path: String, place: String) throws(PlacedProblem) -> UserID {
        let text: String? =
            switch value {
            case .string(let text): text
            case .int(let number): String(number)
            case .null, .bool, .double, .array, .object: nil
            }
        guard let user = text.flatMap(UserID.init(rawValue:)) else {
            throw PlacedProblem(place, .unsuitable(path: path, expected: "a user id"))
        }
        return user
    }
}

extension JSONValue {
    static let badgeExpectation = "a whole number from 0 to 99999"

    /// A number that an app's icon can carry.
    var badgeNumber: Int? { int.flatMap { (0...99999).contains($0) ? Int($0) : nil } }
}
