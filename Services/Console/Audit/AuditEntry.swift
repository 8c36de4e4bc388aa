import FoundationEssentials
import PushProtocol

/// An action of a person in the console.
struct AuditEntry: Hashable, Sendable {
    enum Action: String, Sendable, CaseIterable {
        case signedIn = "signed-in"
        case signedOut = "signed-out"
        case revoked
        case deactivatedDevice = "deactivated-device"
        case madeSupportLink = "made-support-link"
    }

    var at: Date
    /// The person's name.
    var person: String
    var role: Role
    var action: Action
    var app: String?
    /// The event, device or user that the action is about. Never a token.
    var subject: String?
    /// The person's reason.
    var reason: String?
    /// The answer of the service, or the error.
    var result: String
}

extension AuditEntry {
    var json: JSONValue {
        [
            "at": .string(RFC3339.string(from: at)), "person": .string(person), "role": .string(role.rawValue),
            "action": .string(action.rawValue), "app": .optional(app), "subject": .optional(subject),
            "reason": .optional(reason), "result": .string(result),
        ]
    }

    init?(_ json: JSONValue) {
        guard let at = json["at"]?.string.flatMap({ RFC3339.date(from: $0) }), let person = json["person"]?.string,
            let role = json["role"]?.string.flatMap(Role.init), let result = json["result"]?.string,
            let action = json["action"]?.string.flatMap(Action.init)
        else { return nil }
        self.init(
            at: at, person: person, role: role, action: action, app: json["app"]?.string,
            subject: json["subject"]?.string, reason: json["reason"]?.string, result: result)
    }
}
