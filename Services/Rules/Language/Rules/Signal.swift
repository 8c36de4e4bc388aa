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

    /// The maximum time that presence lasts without a renewal.
    package static let longestLease = Duration.seconds(600)
    package static let defaultLease = Duration.seconds(45)
    /// The device's name for upstreams that do not distinguish devices.
    static let onlyDevice = "-"
}

/// How events report presence, reads and completed items.
package struct SignalSource: Hashable, Sendable {
    /// The position in the rule file: `presence.0`.
    package var place: String
    var when: Rule.Condition
    /// The path of the user id; `nil` for a completed item, which concerns all users.
    package var user: String?
    /// The path of the device's name.
    package var device: String?
    /// The thread on the screen, the thread that was read, or the completed item.
    package var thread: Template?
    package var kind: Kind

    package enum Kind: Hashable, Sendable {
        case present(for: Duration)
        case gone
        case read
        case done
    }

    /// Returns the event's signal; `nil` if it has none.
    package func signal(_ event: DomainEvent, _ scope: Scope) throws(RenderError) -> Signal? {
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
