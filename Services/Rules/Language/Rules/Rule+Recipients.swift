package import PushProtocol

extension Rule {
    /// Returns the users in the order of the event, each once. The first mention of a user counts.
    func recipients(_ scope: Scope) throws(PlacedProblem) -> [(user: UserID, badge: Int?, element: JSONValue)] {
        var recipients: [(user: UserID, badge: Int?, element: JSONValue)] = []
        var seen: Set<UserID> = []
        for (index, selector) in to.enumerated() {
            let place = to.count == 1 ? "to" : "to.\(index)"
            let excluded = try selector.excluded(scope, place: place)
            for named in try selector.named(scope, place: place) where !excluded.contains(named.user) {
                guard seen.insert(named.user).inserted else { continue }
                recipients.append((named.user, try selector.badge(of: named, place: place), named.element))
            }
        }
        return recipients
    }
}

extension Rule.Selector {
    func excluded(_ scope: Scope, place: String) throws(PlacedProblem) -> Set<UserID> {
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

    /// A user, and the JSON element that names them.
    package struct Named {
        package var user: UserID
        package var element: JSONValue
        package var path: String
    }

    /// Returns the users that the selector finds. A user can occur twice.
    package func named(_ scope: Scope, place: String) throws(PlacedProblem) -> [Named] {
        switch scope[users] {
        case nil: throw PlacedProblem("\(place).users", .missing(path: users))
        case .null: throw PlacedProblem("\(place).users", .null(path: users))
        case .array(let elements):
            var found: [Named] = []
            for (index, element) in elements.enumerated() {
                if let named = try named(element, at: "\(users).\(index)", place: place) { found.append(named) }
            }
            return found
        case .some(let value): return try named(value, at: users, place: place).map { [$0] } ?? []
        }
    }

    /// Returns the user that one element names; `nil` if the element does not match.
    private func named(_ element: JSONValue, at path: String, place: String) throws(PlacedProblem) -> Named? {
        guard let id else {
            return Named(
                user: try user(element, at: path, place: "\(place).users"), element: element, path: path)
        }
        guard case .object = element else {
            throw PlacedProblem("\(place).users", .unsuitable(path: path, expected: "an object"))
        }
        if let matching, !matching.matches(element) { return nil }
        guard let value = element[path: id] else {
            throw PlacedProblem("\(place).id", .missing(path: "\(path).\(id)"))
        }
        return Named(
            user: try user(value, at: "\(path).\(id)", place: "\(place).id"), element: element, path: path)
    }

    fileprivate func badge(of named: Named, place: String) throws(PlacedProblem) -> Int? {
        guard let badge else { return nil }
        let place = "\(place).badge"
        guard let value = named.element[path: badge] else {
            throw PlacedProblem(place, .missing(path: "\(named.path).\(badge)"))
        }
        if value == .null { return nil }
        guard let number = value.badgeNumber else {
            throw PlacedProblem(
                place, .unsuitable(path: "\(named.path).\(badge)", expected: JSONValue.badgeExpectation))
        }
        return number
    }

    /// Reads a user id from a string or a number.
    private func user(_ value: JSONValue, at path: String, place: String) throws(PlacedProblem) -> UserID {
        guard let user = value.userID else {
            throw PlacedProblem(place, .unsuitable(path: path, expected: "a user id"))
        }
        return user
    }
}

extension JSONValue {
    static let badgeExpectation = "a whole number from 0 to 99999"

    /// The number as a badge; `nil` if it is not a valid badge.
    var badgeNumber: Int? { int.flatMap { (0...99999).contains($0) ? Int($0) : nil } }
}
