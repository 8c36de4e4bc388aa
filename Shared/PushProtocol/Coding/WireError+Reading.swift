extension WireError {
    /// The error for a message in canonical form that cannot be read: the path of the member, without its value.
    init(_ fault: JSONReader.Unreadable, at position: Int, in body: UnsafeBufferPointer<UInt8>) {
        let names = Self.names(at: position, in: body)
        let next = position < body.count ? body[position] : 0
        // At a comma or a closing brace, the last name is that of the member before.
        let isAfterMember = next == UInt8(ascii: ",") || next == UInt8(ascii: "}")
        if let missing = fault.missing, isAfterMember || next == UInt8(ascii: "{") {
            let name = "\(missing)".split(separator: "\"")[0]
            self = .missing(path: (names.dropLast(isAfterMember ? 1 : 0) + [String(name)]).joined(separator: "."))
        } else {
            let path = names.filter { !$0.isEmpty }.joined(separator: ".")
            self = .invalid(path: path.isEmpty ? "the body" : path, problem: "it is not a value that this build reads")
        }
    }

    /// The names of the members around `position`, the outermost first; empty for arrays.
    private static func names(at position: Int, in body: UnsafeBufferPointer<UInt8>) -> [String] {
        var names: [String] = []
        var offset = 0
        while offset < position {
            switch body[offset] {
            case UInt8(ascii: "{"), UInt8(ascii: "["): names.append("")
            case UInt8(ascii: "}"), UInt8(ascii: "]"): names.removeLast()
            case UInt8(ascii: "\""):
                var reader = JSONReader(body, from: offset)
                guard let text = try? reader.string() else { return names }
                offset = reader.position
                if reader.isNext(UInt8(ascii: ":")) { names[names.count - 1] = text }
                continue
            default: break
            }
            offset += 1
        }
        return names
    }
}
