import PushProtocol

/// Trouble that no request asks for: something done to open connections, once or again and again.
struct Disturbance: Sendable {
    /// Which of a port's open connections it is done to.
    enum Selection: String, Sendable, CaseIterable {
        case all, oldest, newest, random
    }

    var ports: [ProviderPort]
    var selection: Selection
    var acts: [Act]
    /// Whether every access token granted so far is refused from then on.
    var revokesAccessTokens: Bool
    /// Until the first time.
    var delay: Duration
    /// From one time to the next; `nil` for once.
    var every: Duration?
    /// How often; `nil` for as long as it is not ended.
    var count: Int?
    var name: String
}

extension Disturbance {
    private static let known: Set<String> = [
        "port", "connections", "goaway", "max_streams", "drop", "close", "stall", "ping", "revoke_access_tokens",
        "delay_ms", "every_ms", "count", "name",
    ]

    /// Reads one posted disturbance or a list of them.
    static func read(_ value: JSONValue) throws(ControlProblem) -> [Disturbance] {
        guard case .array(let elements) = value else { return [try one(value, at: "")] }
        var disturbances: [Disturbance] = []
        for (index, element) in elements.enumerated() { disturbances.append(try one(element, at: "[\(index)].")) }
        return disturbances
    }

    private static func one(_ value: JSONValue, at path: String) throws(ControlProblem) -> Disturbance {
        let members = try MemberReader(value, at: path, known: known)
        let trouble = try trouble(members)
        let every = try members.integer("every_ms", in: 1...3_600_000)
        let count = try members.integer("count", in: 1...1_000_000_000)
        if count != nil, every == nil { throw members.problem("count", "goes with every_ms") }
        let delay = try members.integer("delay_ms", in: MemberReader.delays)
        return Disturbance(
            ports: try members.ports("port"),
            selection: try members.choice("connections", of: Selection.self) ?? .all, acts: trouble.acts,
            revokesAccessTokens: trouble.revokes, delay: .milliseconds(delay ?? every ?? 0),
            every: every.map { .milliseconds($0) }, count: count,
            name: try members.text("name") ?? trouble.name)
    }

    private static func trouble(
        _ members: MemberReader
    ) throws(ControlProblem) -> (acts: [Act], revokes: Bool, name: String) {
        var acts: [Act] = []
        var names: [String] = []
        if let streams = try members.integer("max_streams", in: 1...100_000) {
            acts.append(.limitStreams(streams))
            names.append("\(streams) streams")
        }
        if try members.flag("ping") {
            acts.append(.ping)
            names.append("ping")
        }
        if let goAway = try members.goAway() {
            if goAway.lastStream == .before {
                throw members.problem("goaway", "before belongs to a request: script an outcome with it")
            }
            acts.append(.goAway(goAway))
            names.append("goaway \(goAway.lastStream.name)")
        }
        for (name, act) in [("close", Act.closeConnection), ("drop", .dropConnection), ("stall", .stall)]
        where try members.flag(name) {
            acts.append(act)
            names.append(name)
        }
        let revokes = try members.flag("revoke_access_tokens")
        if revokes { names.append("revoke access tokens") }
        guard !names.isEmpty else {
            throw members.problem(
                "goaway", "is missing, and so are max_streams, drop, close, stall, ping, revoke_access_tokens")
        }
        return (acts, revokes, names.joined(separator: ", "))
    }
}
