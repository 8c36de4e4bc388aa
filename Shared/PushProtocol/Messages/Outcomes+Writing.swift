import FoundationEssentials

extension Outcomes {
    /// The bytes of the general encoder, without it. What travels with a pulse is rare, and left to that one.
    package func written() -> [UInt8]? {
        guard pulse == nil else { return nil }
        var json = JSONOutput(capacity: 320 + 280 * outcomes.count)
        json.raw(#"{"app":"#)
        json.string(app.rawValue)
        if let environment {
            json.raw(#","environment":"#)
            json.string(environment.rawValue)
        }
        json.raw(#","lane":"#)
        json.string(lane.rawValue)
        json.raw(#","origin":"#)
        json.string(origin.rawValue)
        json.raw(#","outcomes":["#)
        var isFirst = true
        for outcome in outcomes {
            if !isFirst { json.raw(",") }
            isFirst = false
            outcome.write(to: &json)
        }
        json.raw(#"],"trace":"#)
        trace.write(to: &json)
        json.raw(#","type":"heliograph.outcomes","version":"#)
        json.integer(Int64(Self.messageVersion))
        json.raw("}")
        return json.bytes
    }
}

extension Outcome {
    fileprivate func write(to json: inout JSONOutput) {
        json.raw(#"{"answer":"#)
        answer.write(to: &json)
        json.raw(#","at":"#)
        json.integer(at.milliseconds)
        if let device {
            json.raw(#","device":"#)
            json.uuid(device)
        }
        if let elsewhere {
            json.raw(#","elsewhere":"#)
            json.string(elsewhere.rawValue)
        }
        json.raw(#","notification":"#)
        json.uuid(notification)
        if let registeredAt {
            json.raw(#","registeredAt":"#)
            json.integer(registeredAt.milliseconds)
        }
        json.raw("}")
    }
}

extension Outcome.Answer {
    fileprivate func write(to json: inout JSONOutput) {
        json.raw(#"{"disposition":"#)
        json.string(disposition.rawValue)
        switch self {
        case .accepted(let id):
            if let id { json.member(#","id":"#, id) }
        case .unregistered(let since, let reason):
            json.member(#","reason":"#, reason)
            if let since {
                json.raw(#","since":"#)
                json.integer(since.milliseconds)
            }
        case .rejected(let reason, let suspectToken):
            json.member(#","reason":"#, reason)
            if suspectToken { json.raw(#","suspectToken":true"#) }
        case .throttled(let reason), .misconfigured(let reason), .skipped(let reason), .unknown(let reason):
            json.member(#","reason":"#, reason)
        case .expired: break
        }
        json.raw("}")
    }
}

extension Trace {
    fileprivate func write(to json: inout JSONOutput) {
        json.member(#"{"causation":"#, causation)
        json.member(#","correlation":"#, correlation)
        json.raw(#","id":"#)
        json.uuid(id)
        if let traceparent { json.member(#","traceparent":"#, traceparent) }
        json.raw("}")
    }
}

extension JSONOutput {
    fileprivate mutating func member(_ name: StaticString, _ value: String) {
        raw(name)
        string(value)
    }
}
