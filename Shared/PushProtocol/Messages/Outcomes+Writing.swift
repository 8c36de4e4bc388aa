import FoundationEssentials

extension Outcomes {
    package func wireBody() throws(WireError) -> [UInt8] {
        let isTable = fitsTable
        let size = 512 + trace.byteCount + outcomes.count * (isTable ? 3 * 39 : 280)
        return ByteWriter.bytes(expected: size) { json in
            if isTable {
                json.put(#"{"accepted":"#)
                outcomes.withUnsafeBufferPointer { json.put(tableOf: $0) }
                json.member(#","app":"#, app.rawValue)
            } else {
                json.member(#"{"app":"#, app.rawValue)
            }
            if let environment { json.member(#","environment":"#, environment.rawValue) }
            json.member(#","lane":"#, lane.rawValue)
            json.member(#","origin":"#, origin.rawValue)
            if !isTable {
                json.put(#","outcomes":"#)
                json.list(of: outcomes.count) { json, row in outcomes[row].write(to: &json) }
            }
            routeHealth?.write(to: &json)
            json.put(#","trace":"#)
            trace.write(to: &json)
            json.put(#","type":"heliograph.outcomes","version":"#)
            json.put(Int64(Self.messageVersion))
            json.put("}")
        }
    }

    /// Whether the table can represent the outcomes: acceptances with a device, one common time and no further
    /// members. Nearly every outcome is one. Accesses them by index, because copying an outcome is expensive.
    private var fitsTable: Bool {
        guard let at = outcomes.first?.at else { return false }
        return outcomes.indices.allSatisfy { position in
            guard case .accepted = outcomes[position].answer else { return false }
            return outcomes[position].at == at && outcomes[position].device != nil
                && outcomes[position].registeredAt == nil && outcomes[position].elsewhere == nil
                && outcomes[position].refusedFID == nil && outcomes[position].owner == nil
        }
    }
}

extension ByteWriter {
    fileprivate mutating func put(tableOf outcomes: UnsafeBufferPointer<Outcome>) {
        put(#"{"at":"#)
        put(outcomes[0].at.milliseconds)
        put(#","devices":"#)
        list(of: outcomes.count) { json, row in
            if let device = outcomes[row].device { json.quoted(device, .upper) }
        }
        if outcomes.contains(where: { $0.providerMessageID != nil }) {
            put(#","ids":"#)
            list(of: outcomes.count) { json, row in json.put(outcomes[row].providerMessageID) }
        }
        put(#","notifications":"#)
        column(of: outcomes.count, { outcomes[$0].notification }) { json, id in json.quoted(id, .upper) }
        put("}")
    }

    private mutating func put(_ name: ProviderMessageID?) {
        guard let name else { return put("null") }
        if let id = name.id { quoted(id, .lower) } else { string(name.text) }
    }

    /// Writes the name of a member, given with its quotes and colon, and a time.
    fileprivate mutating func member(_ name: StaticString, _ time: Timestamp) {
        put(name)
        put(time.milliseconds)
    }
}

extension Outcome {
    /// The provider's id for an accepted message.
    fileprivate var providerMessageID: ProviderMessageID? { if case .accepted(let id) = answer { id } else { nil } }

    fileprivate func write(to json: inout ByteWriter) {
        json.put(#"{"answer":"#)
        answer.write(to: &json)
        json.member(#","at":"#, at)
        if let device {
            json.put(#","device":"#)
            json.quoted(device, .upper)
        }
        if let elsewhere { json.member(#","elsewhere":"#, elsewhere.rawValue) }
        json.put(#","notification":"#)
        json.quoted(notification, .upper)
        if let owner {
            json.put(#","owner":"#)
            json.put(owner.rawValue)
        }
        if let refusedFID { json.member(#","refusedFID":"#, refusedFID) }
        if let registeredAt { json.member(#","registeredAt":"#, registeredAt) }
        json.put("}")
    }
}

extension Outcome.Answer {
    fileprivate func write(to json: inout ByteWriter) {
        json.member(#"{"disposition":"#, disposition.rawValue)
        switch self {
        case .accepted(let id):
            if let id { json.member(#","id":"#, id.text) }
        case .unregistered(let since, let reason):
            json.member(#","reason":"#, reason)
            if let since { json.member(#","since":"#, since) }
        case .rejected(let reason, let suspectToken):
            json.member(#","reason":"#, reason)
            if suspectToken { json.put(#","suspectToken":true"#) }
        case .throttled(let reason), .misconfigured(let reason), .skipped(let reason), .unknown(let reason):
            json.member(#","reason":"#, reason)
        case .expired: break
        }
        json.put("}")
    }
}

extension RouteHealth {
    fileprivate func write(to json: inout ByteWriter) {
        json.put(#","pulse":{"#)
        if let acceptedAt {
            json.member(#""acceptedAt":"#, acceptedAt)
            json.put(",")
        }
        json.put(#""answered":"#)
        json.put(Int64(answered))
        json.member(#","minute":"#, minute)
        json.put(#","sender":"#)
        json.quoted(sender, .upper)
        if let badTokenSpike {
            json.member(#","storm":{"since":"#, badTokenSpike.since)
            json.member(#","until":"#, badTokenSpike.until)
            json.put("}")
        }
        json.put("}")
    }
}
