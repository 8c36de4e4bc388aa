import FoundationEssentials

extension Push {
    /// Encodes without `JSONEncoder`, except for the content. Returns `nil` when any other string needs escaping.
    package func fastEncoded() -> [UInt8]? {
        guard trace.needsNoEscaping, let content = try? WireCoding.encode(content) else { return nil }
        var limit = 512 + app.rawValue.utf8.count + trace.byteCount + content.count
        for target in targets {
            guard target.token.secret.needsNoJSONEscaping else { return nil }
            limit += Target.maximumEncodedSize + target.token.secret.utf8.count
            guard let fallback = target.fallback?.secret else { continue }
            guard fallback.needsNoJSONEscaping else { return nil }
            limit += fallback.utf8.count
        }
        return ByteWriter.bytes(atMost: limit) { json in
            json.put(#"{"app":"#)
            json.put(quoted: app.rawValue)
            json.put(#","content":"#)
            content.withUnsafeBufferPointer { json.put($0) }
            if let delivery {
                json.put(#","delivery":"#)
                json.put(quoted: delivery.rawValue)
            }
            json.put(#","environment":"#)
            json.put(quoted: environment.rawValue)
            if let expiresAt {
                json.put(#","expiresAt":"#)
                json.put(expiresAt.milliseconds)
            }
            json.put(#","lane":"#)
            json.put(quoted: lane.rawValue)
            json.put(#","provider":"#)
            json.put(quoted: provider.rawValue)
            json.put(#","targets":{"#)
            targets.withUnsafeBufferPointer { json.put(columnsOf: $0) }
            json.put("},")
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
}

extension ByteWriter {
    /// Writes the columns of ``PushTargets``.
    fileprivate mutating func put(columnsOf targets: UnsafeBufferPointer<Push.Target>) {
        if targets.contains(where: { $0.address != nil }) {
            put(#""addresses":"#)
            column(of: targets.count, { targets[$0].address }) { json, address in
                guard let address else { return json.put("null") }
                json.put(quoted: address.rawValue)
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
        list(of: targets.count) { json, row in json.put(quoted: targets[row].device, .upper) }
        if targets.contains(where: { $0.fallback != nil }) {
            put(#","fallbacks":"#)
            column(of: targets.count, { targets[$0].fallback }) { json, token in
                guard let token else { return json.put("null") }
                json.put(quoted: token.secret)
            }
        }
        put(#","notifications":"#)
        column(of: targets.count, { targets[$0].notification }) { json, id in json.put(quoted: id, .upper) }
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
        list(of: targets.count) { json, row in json.put(quoted: targets[row].token.secret) }
    }
}
