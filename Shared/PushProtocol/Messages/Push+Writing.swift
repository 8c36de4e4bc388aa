import FoundationEssentials

extension Push {
    /// The bytes of the general encoder, without it but for the content, of which there is one to many targets.
    package func written() -> [UInt8]? {
        guard let content = try? WireCoding.encode(content) else { return nil }
        var json = JSONOutput(capacity: 512 + content.count + 260 * targets.count)
        json.member(#"{"app":"#, app.rawValue)
        json.raw(#","content":"#)
        json.written(content)
        if let delivery { json.member(#","delivery":"#, delivery.rawValue) }
        json.member(#","environment":"#, environment.rawValue)
        if let expiresAt {
            json.raw(#","expiresAt":"#)
            json.integer(expiresAt.milliseconds)
        }
        json.member(#","lane":"#, lane.rawValue)
        json.member(#","provider":"#, provider.rawValue)
        json.raw(#","targets":["#)
        var isFirst = true
        for target in targets {
            if !isFirst { json.raw(",") }
            isFirst = false
            target.write(to: &json)
        }
        json.raw(#"],"trace":"#)
        trace.write(to: &json)
        json.raw(#","type":"heliograph.push","version":"#)
        json.integer(Int64(Self.messageVersion))
        json.raw("}")
        return json.bytes
    }
}

extension Push.Target {
    fileprivate func write(to json: inout JSONOutput) {
        var separator: StaticString = "{"
        if let address {
            json.member(#"{"address":"#, address.rawValue)
            separator = ","
        }
        if let badge {
            json.raw(separator)
            json.raw(#""badge":"#)
            json.integer(Int64(badge))
            separator = ","
        }
        json.raw(separator)
        json.raw(#""device":"#)
        json.uuid(device)
        json.raw(#","notification":"#)
        json.uuid(notification)
        json.raw(#","registeredAt":"#)
        json.integer(registeredAt.milliseconds)
        json.member(#","token":"#, token.secret)
        json.raw("}")
    }
}
