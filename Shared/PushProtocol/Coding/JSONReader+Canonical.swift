/// Ranges of canonical JSON, the form that this project's writers produce.
///
/// Canonical JSON is compact, has sorted names and escapes only the characters that must be escaped. Senders copy such
/// text unchanged. Throws for any other JSON.
extension JSONReader {
    /// Skips any value and returns its range.
    mutating func canonicalValue() throws(Unreadable) -> Range<Int> {
        let start = position
        guard position < bytes.count else { throw Unreadable() }
        switch bytes[position] {
        case UInt8(ascii: "\""): return try canonicalString()
        case UInt8(ascii: "{"): try canonicalMembers { _ in }
        case UInt8(ascii: "["):
            position += 1
            try enterContainer()
            if !consumeNext(UInt8(ascii: "]")) {
                repeat { _ = try canonicalValue() } while consumeNext(UInt8(ascii: ","))
                guard consumeNext(UInt8(ascii: "]")) else { throw Unreadable() }
            }
            leaveContainer()
        case UInt8(ascii: "t"): try literal("true")
        case UInt8(ascii: "f"): try literal("false")
        case UInt8(ascii: "n"): try literal("null")
        case UInt8(ascii: "-"):
            guard try integer() != 0 else { throw Unreadable() }
        case UInt8(ascii: "0")...UInt8(ascii: "9"): _ = try integer()
        default: throw Unreadable()
        }
        return start..<position
    }

    /// Skips an object. Calls `see` with the range of each name, without quotes, before its value.
    mutating func canonicalMembers(_ see: (Range<Int>) throws(Unreadable) -> Void) throws(Unreadable) {
        guard consumeNext(UInt8(ascii: "{")) else { throw Unreadable() }
        try enterContainer()
        if !consumeNext(UInt8(ascii: "}")) {
            var last: Range<Int>?
            repeat {
                let name = try canonicalName()
                if let last, !isBefore(last, name) { throw Unreadable() }
                last = name
                try see(name)
                _ = try canonicalValue()
            } while consumeNext(UInt8(ascii: ","))
            guard consumeNext(UInt8(ascii: "}")) else { throw Unreadable() }
        }
        leaveContainer()
    }

    /// Skips a member's name and the colon. Accepts ASCII names only, because other names may sort differently as
    /// text.
    mutating func canonicalName() throws(Unreadable) -> Range<Int> {
        guard isNext(UInt8(ascii: "\"")) else { throw Unreadable() }
        let start = position + 1
        let run = UnescapedRun(in: bytes, from: start)
        guard run.isASCII, matches("\":", at: run.end) else { throw Unreadable() }
        position = run.end + 2
        return start..<run.end
    }

    /// Skips a string and returns its range, quotes included.
    mutating func canonicalString() throws(Unreadable) -> Range<Int> {
        let start = position
        guard consumeNext(UInt8(ascii: "\"")) else { throw Unreadable() }
        var isASCII = true
        while true {
            let run = UnescapedRun(in: bytes, from: position)
            isASCII = isASCII && run.isASCII
            guard run.end < bytes.count else { throw Unreadable() }
            position = run.end + 1
            if bytes[run.end] == UInt8(ascii: "\"") { break }
            guard bytes[run.end] == UInt8(ascii: "\\") else { throw Unreadable() }
            try canonicalEscape()
        }
        if !isASCII, String(validating: UnsafeBufferPointer(rebasing: bytes[start..<position]), as: UTF8.self) == nil {
            throw Unreadable()
        }
        return start..<position
    }

    /// Skips one escape. Accepts only the escapes of two characters that ``ByteWriter`` writes.
    private mutating func canonicalEscape() throws(Unreadable) {
        guard position < bytes.count else { throw Unreadable() }
        switch bytes[position] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
            UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        default: throw Unreadable()
        }
    }

    /// Skips `byte` if it is next, without whitespace before it. Returns whether it was.
    @inline(__always)
    mutating func consumeNext(_ byte: UInt8) -> Bool {
        guard isNext(byte) else { return false }
        position += 1
        return true
    }

    /// Returns `count` bytes (at most 8) from `start` as a big-endian number. Returns `nil` within 8 bytes of the
    /// end.
    @inline(__always)
    func number(at start: Int, _ count: Int) -> UInt64? {
        guard start + 8 <= bytes.count else { return nil }
        let eight = UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: start, as: UInt64.self)
        return UInt64(bigEndian: eight) >> UInt64(64 - 8 * count)
    }

    /// Returns whether `range` contains exactly `text`.
    func isText(_ text: StaticString, in range: Range<Int>) -> Bool {
        range.count == text.utf8CodeUnitCount && matches(text, at: range.lowerBound)
    }

    /// Returns whether the name in `range` sorts before `text`.
    func isBefore(_ range: Range<Int>, _ text: StaticString) -> Bool {
        bytes[range].lexicographicallyPrecedes(
            UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Returns whether the name in `a` sorts before the name in `b`.
    func isBefore(_ a: Range<Int>, _ b: Range<Int>) -> Bool {
        for offset in 0..<min(a.count, b.count) {
            let (one, other) = (bytes[a.lowerBound + offset], bytes[b.lowerBound + offset])
            if one != other { return one < other }
        }
        return a.count < b.count
    }
}
