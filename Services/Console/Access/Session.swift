import FoundationEssentials
import PushProtocol

/// A signed-in person. The browser keeps it in a signed cookie, so that any process of the console serves it.
struct Session: Hashable, Sendable {
    /// A random id; the token of its forms belongs to it.
    let id: String
    /// The person's name for the audit log: the claim `email`, `preferred_username` or `sub` of the ID token.
    let name: String
    let role: Role

    init(name: String, role: Role) {
        id = UUID().uuidString
        self.name = name
        self.role = role
    }

    init?(_ value: JSONValue) {
        guard let id = value["id"]?.string, let name = value["name"]?.string,
            let role = value["role"]?.string.flatMap(Role.init)
        else { return nil }
        (self.id, self.name, self.role) = (id, name, role)
    }

    var value: [String: JSONValue] {
        ["id": .string(id), "name": .string(name), "role": .string(role.rawValue)]
    }
}
