import PushProtocol

/// A fault injected into open connections, once or periodically.
struct ConnectionFault: Sendable {
    /// The open connections of a port that it affects.
    enum Selection: String, Sendable, CaseIterable {
        case all, oldest, newest, random
    }

    var ports: [ProviderPort]
    var selection: Selection
    var actions: [WireAction]
    /// Whether it revokes every access token granted so far.
    var revokesAccessTokens: Bool
    /// Until the first run.
    var delay: Duration
    /// Between two runs; `nil` for a single run.
    var every: Duration?
    /// The number of runs; `nil` until it is deleted.
    var count: Int?
    var name: String
}

extension ConnectionFault {
    private static let known: Set<String> = [
        "port", "connections", "goaway", "max_streams", "drop", "close", "stall", "ping", "revoke_access_tokens",
        "delay_ms", "every_ms", "count", "name",
    ]

    static func read(_ value: JSONValue) throws(ControlRequestError) -> [ConnectionFault] {
        try MemberReader.elements(of: value, one)
    }

    private static func one(at path: String, _ value: JSONValue) throws(ControlRequestError) -> ConnectionFault {
        let members = try MemberReader(value, at: path, known: known)
        let faults = try faults(members)
        let every = try members.integer("every_ms", in: 1...3_600_000)
        let count = try members.integer("count", in: 1...1_000_000_000)
        if count != nil, every == nil { throw members.problem("count", "goes with every_ms") }
        let delay = try members.integer("delay_ms", in: MemberReader.delays)
        return ConnectionFault(
            ports: try members.ports("port"),
            selection: try members.choice("connections", of: Selection.self) ?? .all, actions: faults.actions,
            revokesAccessTokens: faults.revokes, delay: .milliseconds(delay ?? every ?? 0),
            every: every.map { .milliseconds($0) }, count: count,
            name: try members.text("name") ?? faults.name)
    }

    private static func faults(
        _ members: MemberReader
    ) throws(ControlRequestError) -> (actions: [WireAction], revokes: Bool, name: String) {
        var actions: [WireAction] = []
        var names: [String] = []
        if let streams = try members.integer("max_streams", in: 1...100_000) {
            actions.append(.limitStreams(streams))
            names.append("\(streams) streams")
        }
        if try members.flag("ping") {
            actions.append(.ping)
            names.append("ping")
        }
        if let goAway = try members.goAway() {
            if goAway.lastStream == .before {
                throw members.problem("goaway", "before needs a request: script an outcome with it")
            }
            actions.append(.goAway(goAway))
            names.append("goaway \(goAway.lastStream.name)")
        }
        for (name, action) in [("close", WireAction.closeConnection), ("drop", .dropConnection), ("stall", .stall)]
        where try members.flag(name) {
            actions.append(action)
            names.append(name)
        }
        let revokes = try members.flag("revoke_access_tokens")
        if revokes { names.append("revoke access tokens") }
        guard !names.isEmpty else {
            throw members.problem(
                "goaway", "is missing, as are max_streams, drop, close, stall, ping and revoke_access_tokens")
        }
        return (actions, revokes, names.joined(separator: ", "))
    }
}
