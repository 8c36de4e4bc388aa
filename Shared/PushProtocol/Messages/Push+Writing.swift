import FoundationEssentials

extension Push {
    package func wireBody() throws(WireError) -> [UInt8] {
        let content = try WireCoding.encode(content)
        var size = 576 + app.rawValue.utf8.count + trace.byteCount + content.count
        for target in targets { size += target.expectedSize }
        return ByteWriter.bytes(expected: size) { json in
            json.member(#"{"app":"#, app.rawValue)
            if let campaign { json.member(#","campaign":"#, Hexadecimal.text(of: campaign)) }
            json.put(#","content":"#)
            json.put(content)
            if let delivery { json.member(#","delivery":"#, delivery.rawValue) }
            json.member(#","environment":"#, environment.rawValue)
            if let expiresAt {
                json.put(#","expiresAt":"#)
                json.put(expiresAt.milliseconds)
            }
            json.member(#","lane":"#, lane.rawValue)
            json.member(#","provider":"#, provider.rawValue)
            json.put(#","targets":{"#)
            targets.withUnsafeBufferPointer { json.put(columnsOf: $0) }
            json.put(#"},"trace":"#)
            trace.write(to: &json)
            json.put(#","type":"heliograph.push","version":"#)
            json.put(Int64(Self.messageVersion))
            json.put("}")
        }
    }
}

extension Push.Target {
    /// The maximum encoded size of a target without its tokens: two UUIDs, three numbers, an address and four quotes
    /// with a comma.
    package static let maximumEncodedSize = 2 * 39 + 3 * 21 + 15 + 3 + 5

    fileprivate var expectedSize: Int {
        Self.maximumEncodedSize + token.secret.utf8.count + (fallback?.secret.utf8.count ?? 0)
    }
}

extension ByteWriter {
    /// Writes the columns of the table of targets.
    fileprivate mutating func put(columnsOf targets: UnsafeBufferPointer<Push.Target>) {
        if targets.contains(where: { $0.address != nil }) {
            put(#""addresses":"#)
            column(of: targets.count, { targets[$0].address }) { json, address in
                guard let address else { return json.put("null") }
                json.string(address.rawValue)
            }
            put(",")
        }
        if targets.contains(where: { $0.badge != nil }) {
            put(#""badges":"#)
            column(of: targets.count, { targets[$0].badge }) { json, badge in
                guard let badge else { return json.put("null") }
                json.put(Int64(badge))
            }
            put(",")
        }
        put(#""devices":"#)
        list(of: targets.count) { json, row in json.quoted(targets[row].device, .upper) }
        if targets.contains(where: { $0.fallback != nil }) {
            put(#","fallbacks":"#)
            column(of: targets.count, { targets[$0].fallback }) { json, token in
                guard let token else { return json.put("null") }
                json.string(token.secret)
            }
        }
        put(#","notifications":"#)
        column(of: targets.count, { targets[$0].notification }) { json, id in json.quoted(id, .upper) }
        if targets.contains(where: { $0.owner != nil }) {
            put(#","owners":"#)
            column(of: targets.count, { targets[$0].owner }) { json, owner in
                guard let owner else { return json.put("null") }
                json.put(owner.rawValue)
            }
        }
        put(#","registeredAt":"#)
        column(of: targets.count, { targets[$0].registeredAt }) { json, moment in json.put(moment.milliseconds) }
        put(#","tokens":"#)
        list(of: targets.count) { json, row in json.string(targets[row].token.secret) }
    }
}
