/// The event types that a publisher's token allows: the claim `event_types`.
struct AllowedTypes: Hashable, Sendable {
    /// Types, and beginnings of types that end with a dot.
    let names: [String]

    func contains(_ type: String) -> Bool {
        names.contains { $0.hasSuffix(".") ? type.hasPrefix($0) : type == $0 }
    }
}
