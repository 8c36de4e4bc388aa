import FoundationEssentials

extension Outcomes {
    /// Encodes without `JSONEncoder`, to the same bytes. Returns `nil` for messages with `routeHealth`, which are
    /// rare.
    package func fastEncoded() -> [UInt8]? {
        guard routeHealth == nil else { return nil }
        if AcceptedTable.canRepresent(outcomes) { return fastEncodedTable() }
        var json = JSONByteWriter(capacity: 320 + 280 * outcomes.count)
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
    /// Encodes the table form. Returns `nil` when a string needs escaping.
    private func fastEncodedTable() -> [UInt8]? {
        guard trace.needsNoEscaping else { return nil }
        var limit = 512 + app.rawValue.utf8.count + trace.byteCount
        var isNamed = false
        for position in outcomes.indices {
            // The maximum size of a row, without a message id that is not a UUID.
            limit += 3 * 39
            guard let name = outcomes[position].providerMessageID else { continue }
            isNamed = true
            // A UUID needs no escaping.
            guard name.id == nil else { continue }
            guard name.text.needsNoJSONEscaping else { return nil }
            limit += name.text.utf8.count
        }
        return ByteWriter.bytes(atMost: limit) { json in
            json.put(#"{"accepted":{"at":"#)
            json.put(outcomes[0].at.milliseconds)
            outcomes.withUnsafeBufferPointer { outcomes in
                json.put(#","devices":"#)
                json.list(of: outcomes.count) { json, row in
                    if let device = outcomes[row].device { json.put(quoted: device, .upper) }
                }
                if isNamed {
                    json.put(#","ids":"#)
                    json.list(of: outcomes.count) { json, row in json.put(outcomes[row].providerMessageID) }
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

extension ByteWriter {
    fileprivate mutating func put(_ name: ProviderMessageID?) {
        guard let name else { return put("null") }
        if let id = name.id { put(quoted: id, .lower) } else { put(quoted: name.text) }
    }
}

extension Outcome {
    fileprivate func write(to json: inout JSONByteWriter) {
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
    fileprivate func write(to json: inout JSONByteWriter) {
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

extension JSONByteWriter {
    mutating func member(_ name: StaticString, _ value: String) {
        raw(name)
        string(value)
    }
}
