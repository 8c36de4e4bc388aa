package import PushProtocol

/// A change of a user, a group or an item that an event reports.
package enum Signal: Hashable, Sendable {
    /// The app is open on a device. `viewing` is the thread on the screen, if any.
    case present(UserID, device: String, viewing: String?, for: Duration)
    /// The app is no longer open on the device.
    case gone(UserID, device: String)
    /// The user has read a thread's inbox items; `nil`: all inbox items.
    case read(UserID, thread: String?)
    /// Users with these roles join the group, leave it, or replace all of its members.
    case membership(group: String, [UserID: String?], MembershipSource.Change)
    /// The item is completed: its waiting notifications are cancelled.
    case done(item: String)
    /// Notifications about the item are taken back before they are shown: those of `user`, or of all users.
    case revoke(item: String, user: UserID?, keepsInbox: Bool, place: String)

    /// The maximum time that presence lasts without a renewal.
    package static let longestLease = Duration.seconds(600)
    package static let defaultLease = Duration.seconds(45)
    /// The device's name for upstreams that do not distinguish devices.
    static let onlyDevice = "-"
}

/// How events report presence, reads, completed and revoked items.
package struct SignalSource: Hashable, Sendable {
    /// The position in the rule file: `presence.0`.
    package var place: String
    var when: Rule.Condition
    /// The path of the user id; `nil` for an item that concerns all users.
    package var user: String?
    /// The path of the device's name.
    package var device: String?
    /// The thread on the screen, the thread that was read, or the completed or revoked item.
    package var thread: Template?
    package var kind: Kind

    package enum Kind: Hashable, Sendable {
        case present(for: Duration)
        case gone
        case read
        case done
        case revoke(keepsInbox: Bool)

        /// Whether the event names an item, and not a thread.
        package var isAboutItem: Bool {
            switch self {
            case .done, .revoke: true
            case .present, .gone, .read: false
            }
        }

        /// The key of the thread or item in the rule file.
        fileprivate var threadKey: String {
            switch self {
            case .present, .gone: "viewing"
            case .read: "thread"
            case .done, .revoke: "item"
            }
        }
    }

    /// Returns the event's signal; `nil` if it has none.
    package func signal(_ event: DomainEvent, _ scope: Scope) throws(RenderError) -> Signal? {
        guard when.events.contains(event.type), when.holds(event) else { return nil }
        do throws(PlacedProblem) {
            let person = try user.map { path throws(PlacedProblem) in try userID(at: path, scope) }
            switch kind {
            case .present(let lease):
                let (name, viewing) = (try device(scope), try thread(scope))
                return person.map { .present($0, device: name, viewing: viewing, for: lease) }
            case .gone:
                let name = try device(scope)
                return person.map { .gone($0, device: name) }
            case .read:
                let read = try thread(scope)
                return person.map { .read($0, thread: read) }
            case .done: return try item(scope).map { .done(item: $0) }
            case .revoke(let keepsInbox):
                return try item(scope).map { .revoke(item: $0, user: person, keepsInbox: keepsInbox, place: place) }
            }
        } catch {
            throw RenderError(rule: place, place: error.place, problem: error.problem)
        }
    }

    private func userID(at path: String, _ scope: Scope) throws(PlacedProblem) -> UserID {
        guard let user = scope[path]?.userID else {
            throw PlacedProblem("user", .unsuitable(path: path, expected: "a user id"))
        }
        return user
    }

    /// The item's name, cut to the length of a stored name.
    private func item(_ scope: Scope) throws(PlacedProblem) -> String? {
        try thread(scope).map { $0.excerpt(Rule.maximumMute).excerpt(bytes: Rule.maximumNameBytes) }
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
            throw PlacedProblem(kind.threadKey, error)
        }
    }
}
