import FoundationEssentials

extension Outcomes {
    /// The bytes of the general encoder, without it. What travels with a pulse is rare, and left to that one.
    package func written() -> [UInt8]? {
        guard pulse == nil else { return nil }
        if let bytes = writtenAcceptances() { return bytes }
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
    /// As ``written()``, for what nearly all outcomes are: accepted, with texts in which nothing has to be escaped.
    private func writtenAcceptances() -> [UInt8]? {
        var limit = 512 + app.rawValue.utf8.count + trace.length
        // By their places: an outcome has many parts to copy.
        for place in outcomes.indices {
            guard case .accepted(let id) = outcomes[place].answer else { return nil }
            // What each takes at most, but for a name that is no id.
            limit += 320
            // An id has nothing to escape.
            guard let id, id.id == nil else { continue }
            guard id.text.isPlainJSON else { return nil }
            limit += id.text.utf8.count
        }
        guard trace.isPlain else { return nil }
        return ByteCursor.bytes(atMost: limit) { json in
            json.put(#"{"app":""#)
            json.put(text: app.rawValue)
            if let environment {
                json.put(#"","environment":""#)
                json.put(text: environment.rawValue)
            }
            json.put(#"","lane":""#)
            json.put(text: lane.rawValue)
            json.put(#"","origin":""#)
            json.put(text: origin.rawValue)
            json.put(#"","outcomes":["#)
            outcomes.withUnsafeBufferPointer { outcomes in
                // By their parts: an outcome has many to copy.
                for place in outcomes.indices {
                    if place > 0 { json.put(",") }
                    json.put(#"{"answer":{"disposition":"accepted""#)
                    if case .accepted(let name?) = outcomes[place].answer { name.write(to: &json) }
                    json.put(#"},"at":"#)
                    json.put(outcomes[place].at.milliseconds)
                    if let device = outcomes[place].device {
                        json.put(#","device":""#)
                        json.put(device, .upper)
                        json.put("\"")
                    }
                    if let elsewhere = outcomes[place].elsewhere {
                        json.put(#","elsewhere":""#)
                        json.put(text: elsewhere.rawValue)
                        json.put("\"")
                    }
                    json.put(#","notification":""#)
                    json.put(outcomes[place].notification, .upper)
                    json.put("\"")
                    if let registeredAt = outcomes[place].registeredAt {
                        json.put(#","registeredAt":"#)
                        json.put(registeredAt.milliseconds)
                    }
                    json.put("}")
                }
            }
            json.put("],")
            trace.write(to: &json)
            json.put(#","type":"heliograph.outcomes","version":"#)
            json.put(Int64(Self.messageVersion))
            json.put("}")
        }
    }
}

extension ProviderName {
    fileprivate func write(to json: inout ByteCursor) {
        json.put(#","id":""#)
        if let id { json.put(id, .lower) } else { json.put(text: text) }
        json.put("\"")
    }
}

extension Trace {
    fileprivate var isPlain: Bool {
        correlation.isPlainJSON && causation.isPlainJSON && (traceparent?.isPlainJSON ?? true)
    }

    /// The bytes of its texts.
    fileprivate var length: Int { correlation.utf8.count + causation.utf8.count + (traceparent?.utf8.count ?? 0) }

    fileprivate func write(to json: inout ByteCursor) {
        json.put(#""trace":{"causation":""#)
        json.put(text: causation)
        json.put(#"","correlation":""#)
        json.put(text: correlation)
        json.put(#"","id":""#)
        json.put(id, .upper)
        if let traceparent {
            json.put(#"","traceparent":""#)
            json.put(text: traceparent)
        }
        json.put("\"}")
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

extension Trace {
    func write(to json: inout JSONOutput) {
        json.member(#"{"causation":"#, causation)
        json.member(#","correlation":"#, correlation)
        json.raw(#","id":"#)
        json.uuid(id)
        if let traceparent { json.member(#","traceparent":"#, traceparent) }
        json.raw("}")
    }
}

extension JSONOutput {
    mutating func member(_ name: StaticString, _ value: String) {
        raw(name)
        string(value)
    }
}
