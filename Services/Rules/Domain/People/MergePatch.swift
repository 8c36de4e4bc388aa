import PushProtocol

extension JSONValue {
    /// Returns this value after a merge patch (RFC 7396).
    func patched(by patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var members = object ?? [:]
        for (name, change) in changes {
            members[name] = change == .null ? Optional.none : (members[name] ?? .null).patched(by: change)
        }
        return .object(members)
    }
}
