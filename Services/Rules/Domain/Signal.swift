import PushProtocol

/// What an event tells about a person, rather than to one.
enum Signal: Hashable, Sendable {
    /// The app is open on a device, showing a thread or something else.
    case present(UserID, device: String, viewing: String?, for: Duration)
    /// It is not any more.
    case gone(UserID, device: String)
    /// The person has read what the inbox holds of a thread or, without one, all of it.
    case read(UserID, thread: String?)
    /// These belong to a group now, with these roles; or do not any more; or are all who do.
    case membership(group: String, [UserID: String?], MembershipSource.Change)
    /// This need not be told any more.
    case done(item: String)

    /// The longest that an app is taken to be open without another word.
    static let longestLease = Duration.seconds(600)
    static let usualLease = Duration.seconds(45)
    /// For upstreams that do not tell devices apart.
    static let onlyDevice = "-"
}

/// How events of a file tell that people are looking, or have read something.
struct SignalSource: Hashable, Sendable {
    /// Where it stands in the file: `presence.0`.
    var place: String
    var when: Rule.Condition
    /// The path of the user's id; `nil` for what is done for everybody.
    var user: String?
    /// The path of the device's name.
    var device: String?
    /// What stands on the screen, or was read, or is done.
    var thread: Template?
    var kind: Kind

    enum Kind: Hashable, Sendable {
        case present(for: Duration)
        case gone
        case read
        case done
    }

    /// What this event tells; `nil` if nothing.
    func signal(_ event: DomainEvent, _ scope: Scope) throws(RenderError) -> Signal? {
        guard when.events.contains(event.type), when.holds(event) else { return nil }
        do throws(PlacedProblem) {
            guard let path = user else {
                return try thread(scope).map {
                    .done(item: $0.excerpt(Rule.maximumMute).excerpt(bytes: Rule.maximumNameBytes))
                }
            }
            guard let user = scope[path]?.userID else {
                throw PlacedProblem("user", .unsuitable(path: path, expected: "a user id"))
            }
            let device = try device(scope)
            switch kind {
            case .present(let lease):
                return .present(user, device: device, viewing: try thread(scope), for: lease)
            case .gone: return .gone(user, device: device)
            case .read: return .read(user, thread: try thread(scope))
            case .done: return Optional.none
            }
        } catch {
            throw RenderError(rule: place, place: error.place, problem: error.problem)
        }
    }

    private func device(_ scope: Scope) throws(PlacedProblem) -> String {
        guard let device else { return Signal.onlyDevice }
        guard let name = scope[device]?.shown, !name.isEmpty, name.utf8.count <= 256 else {
            throw PlacedProblem("device", .unsuitable(path: device, expected: "a device's name"))
        }
        return name.replacing("\0", with: "")
    }

    private func thread(_ scope: Scope) throws(PlacedProblem) -> String? {
        guard let thread else { return nil }
        do {
            let name = try thread.render(scope).replacing("\0", with: "")
            return name.isEmpty ? nil : name
        } catch {
            let place =
                switch kind {
                case .present, .gone: "viewing"
                case .read: "thread"
                case .done: "item"
                }
            throw PlacedProblem(place, error)
        }
    }
}

extension JSONValue {
    /// A user id: a text, or a number, which many upstreams count their users with.
    var userID: UserID? {
        switch self {
        case .string(let text): UserID(rawValue: text)
        case .int(let number): UserID(rawValue: String(number))
        case .null, .bool, .double, .array, .object: nil
        }
    }
}
