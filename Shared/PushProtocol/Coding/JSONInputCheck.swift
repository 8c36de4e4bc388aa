/// Checks untrusted JSON before a recursive parser reads it.
enum JSONInputCheck {
    /// Throws unless `body` is UTF-8 and nests at most `maximumDepth` levels.
    ///
    /// Counts brackets outside strings. Does not check that they match; the parser does.
    static func check(_ body: [UInt8], maximumDepth: Int) throws(WireError) {
        guard String(validating: body, as: UTF8.self) != nil else {
            throw .notUTF8(offset: firstInvalidOffset(in: body))
        }
        var depth = 0
        var inString = false
        var escaped = false
        for byte in body {
            if inString {
                if escaped {
                    escaped = false
                } else if byte == UInt8(ascii: "\\") {
                    escaped = true
                } else if byte == UInt8(ascii: "\"") {
                    inString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): inString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                if depth > maximumDepth { throw .tooDeep(limit: maximumDepth) }
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            default: break
            }
        }
    }

    private static func firstInvalidOffset(in body: [UInt8]) -> Int {
        var decoder = UTF8()
        var bytes = body.makeIterator()
        var offset = 0
        while true {
            switch decoder.decode(&bytes) {
            case .scalarValue(let scalar): offset += UTF8.width(scalar)
            case .emptyInput, .error: return offset
            }
        }
    }
}
