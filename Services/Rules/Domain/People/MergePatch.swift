import PushProtocol

extension JSONValue {
    /// This value after a merge patch (RFC 7396): what the patch does not mention stays, what is null in it goes.
    func patched(by patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var members = object ?? [:]
        for (name, change) in changes {
            members[name] = change == .null ? Optional.none : (members[name] ?? .null).patched(by: change)
        }
        return .object(members)
    }
}
