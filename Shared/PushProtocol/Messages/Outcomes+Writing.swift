import FoundationEssentials

extension Outcomes {
    /// The bytes of the general encoder, without it. What travels with a pulse is rare, and left to that one.
    package func written() -> [UInt8]? {
        guard pulse == nil else { return nil }
        if Acceptances.hold(outcomes) { return writtenAcceptances() }
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

extension Outcomes {
    /// As ``written()``, for a table of acceptances; `nil` where something in its texts has to be escaped.
    private func writtenAcceptances() -> [UInt8]? {
        guard trace.isPlain else { return nil }
        var limit = 512 + app.rawValue.utf8.count + trace.length
        var isNamed = false
        for place in outcomes.indices {
            // What each takes at most, but for a name that is no id.
            limit += 3 * 39
            guard let name = outcomes[place].providerName else { continue }
            isNamed = true
            // An id has nothing to escape.
            guard name.id == nil else { continue }
            guard name.text.isPlainJSON else { return nil }
            limit += name.text.utf8.count
        }
        return ByteCursor.bytes(atMost: limit) { json in
            json.put(#"{"accepted":{"at":"#)
            json.put(outcomes[0].at.milliseconds)
            outcomes.withUnsafeBufferPointer { outcomes in
                json.put(#","devices":"#)
                json.list(of: outcomes.count) { json, row in
                    if let device = outcomes[row].device { json.put(quoted: device, .upper) }
                }
                if isNamed {
                    json.put(#","ids":"#)
                    json.list(of: outcomes.count) { json, row in json.put(outcomes[row].providerName) }
                }
                json.put(#","notifications":"#)
                json.column(of: outcomes.count, { outcomes[$0].notification }) { json, id in
                    json.put(quoted: id, .upper)
                }
            }
            json.put(#"},"app":"#)
            json.put(quoted: app.rawValue)
            if let environment {
                json.put(#","environment":"#)
                json.put(quoted: environment.rawValue)
            }
            json.put(#","lane":"#)
            json.put(quoted: lane.rawValue)
            json.put(#","origin":"#)
            json.put(quoted: origin.rawValue)
            json.put(",")
            trace.write(to: &json)
            json.put(#","type":"heliograph.outcomes","version":"#)
            json.put(Int64(Self.messageVersion))
            json.put("}")
        }
    }
}

extension ByteCursor {
    fileprivate mutating func put(_ name: ProviderName?) {
        guard let name else { return put("null") }
        if let id = name.id { put(quoted: id, .lower) } else { put(quoted: name.text) }
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
        if let owner {
            json.raw(#","owner":"#)
            json.integer(owner.rawValue)
        }
        if let refusedFID { json.member(#","refusedFID":"#, refusedFID) }
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
            if let id { json.member(#","id":"#, id.text) }
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

extension JSONOutput {
    mutating func member(_ name: StaticString, _ value: String) {
        raw(name)
        string(value)
    }
}
