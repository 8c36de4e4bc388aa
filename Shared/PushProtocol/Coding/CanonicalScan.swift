/// Passes over JSON that is written as our own writers write it: compact, with members in the order of their names and
/// nothing escaped that need not be. Such text may be copied as it stands.
///
/// Whatever is written otherwise, or is no JSON at all, is left to a reader that makes values of it (``JSONReader``).
struct CanonicalScan {
    let bytes: UnsafeBufferPointer<UInt8>
    private(set) var place: Int
    private var depth: Int

    /// Begins at `place` in `bytes`, inside so many arrays and objects.
    init(_ bytes: UnsafeBufferPointer<UInt8>, from place: Int, depth: Int) {
        self.bytes = bytes
        self.place = place
        self.depth = depth
    }

    /// Passes over any value, and returns where it stands.
    mutating func value() throws(JSONReader.Unusual) -> Range<Int> {
        let start = place
        guard place < bytes.count else { throw JSONReader.Unusual() }
        switch bytes[place] {
        case UInt8(ascii: "\""): return try string()
        case UInt8(ascii: "{"): try members { _ in }
        case UInt8(ascii: "["):
            try open(UInt8(ascii: "["))
            if !takes(UInt8(ascii: "]")) {
                repeat { _ = try value() } while takes(UInt8(ascii: ","))
                try expect(UInt8(ascii: "]"))
            }
            depth -= 1
        case UInt8(ascii: "t"): try word("true")
        case UInt8(ascii: "f"): try word("false")
        case UInt8(ascii: "n"): try word("null")
        default: _ = try integer()
        }
        return start..<place
    }

    /// Passes over an object. `see` is shown where each name stands, without its quotes, before its value is passed.
    mutating func members(_ see: (Range<Int>) throws(JSONReader.Unusual) -> Void) throws(JSONReader.Unusual) {
        try open(UInt8(ascii: "{"))
        if !takes(UInt8(ascii: "}")) {
            var last: Range<Int>?
            repeat {
                let name = try name()
                if let last, !isBefore(last, name) { throw JSONReader.Unusual() }
                last = name
                try see(name)
                _ = try value()
            } while takes(UInt8(ascii: ","))
            try expect(UInt8(ascii: "}"))
        }
        depth -= 1
    }

    /// Passes over a member's name and the colon. Only names of plain ASCII have the same order as text and as bytes.
    mutating func name() throws(JSONReader.Unusual) -> Range<Int> {
        try expect(UInt8(ascii: "\""))
        let start = place
        let run = PlainRun(in: bytes, from: start)
        guard run.isASCII, run.end < bytes.count, bytes[run.end] == UInt8(ascii: "\"") else {
            throw JSONReader.Unusual()
        }
        place = run.end + 1
        try expect(UInt8(ascii: ":"))
        return start..<run.end
    }

    /// Passes over a string, and returns where it stands, with its quotes.
    mutating func string() throws(JSONReader.Unusual) -> Range<Int> {
        let start = place
        try expect(UInt8(ascii: "\""))
        var isASCII = true
        while true {
            let run = PlainRun(in: bytes, from: place)
            isASCII = isASCII && run.isASCII
            guard run.end < bytes.count else { throw JSONReader.Unusual() }
            place = run.end + 1
            if bytes[run.end] == UInt8(ascii: "\"") { break }
            guard bytes[run.end] == UInt8(ascii: "\\") else { throw JSONReader.Unusual() }
            try escape()
        }
        if !isASCII, String(validating: UnsafeBufferPointer(rebasing: bytes[start..<place]), as: UTF8.self) == nil {
            throw JSONReader.Unusual()
        }
        return start..<place
    }

    /// What ``JSONOutput`` escapes, as it escapes it: the rest could have been written in another way.
    private mutating func escape() throws(JSONReader.Unusual) {
        guard place < bytes.count else { throw JSONReader.Unusual() }
        switch bytes[place] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
            UInt8(ascii: "r"), UInt8(ascii: "t"):
            place += 1
        default: throw JSONReader.Unusual()
        }
    }

    /// Reads an integer of at most eighteen digits, which cannot overflow.
    mutating func integer() throws(JSONReader.Unusual) -> Int64 {
        let isNegative = takes(UInt8(ascii: "-"))
        let first = place
        var value: Int64 = 0
        while place < bytes.count, bytes[place] &- UInt8(ascii: "0") < 10 {
            value = value &* 10 &+ Int64(bytes[place] &- UInt8(ascii: "0"))
            place += 1
        }
        guard (1...18).contains(place - first), place - first == 1 || bytes[first] != UInt8(ascii: "0"),
            !isNegative || value != 0, place == bytes.count || !Self.continuesNumber(bytes[place])
        else { throw JSONReader.Unusual() }
        return isNegative ? -value : value
    }

    private static func continuesNumber(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ".") || byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E")
    }

    /// Passes over `text` where it follows.
    mutating func word(_ text: StaticString) throws(JSONReader.Unusual) {
        guard holds(text, at: place) else { throw JSONReader.Unusual() }
        place += text.utf8CodeUnitCount
    }

    /// Whether `text` stands at `start`.
    func holds(_ text: StaticString, at start: Int) -> Bool {
        let count = text.utf8CodeUnitCount
        guard start + count <= bytes.count else { return false }
        for offset in 0..<count where bytes[start + offset] != text.utf8Start[offset] { return false }
        return true
    }

    /// Whether `text` is all that stands in `range`.
    func isText(_ text: StaticString, in range: Range<Int>) -> Bool {
        range.count == text.utf8CodeUnitCount && holds(text, at: range.lowerBound)
    }

    /// Takes `byte` when it follows.
    mutating func takes(_ byte: UInt8) -> Bool {
        guard place < bytes.count, bytes[place] == byte else { return false }
        place += 1
        return true
    }

    mutating func expect(_ byte: UInt8) throws(JSONReader.Unusual) {
        guard takes(byte) else { throw JSONReader.Unusual() }
    }

    mutating func open(_ bracket: UInt8) throws(JSONReader.Unusual) {
        try expect(bracket)
        depth += 1
        guard depth <= WireCoding.maximumDepth else { throw JSONReader.Unusual() }
    }

    /// Whether the name in `range` comes before `text`.
    func isBefore(_ range: Range<Int>, _ text: StaticString) -> Bool {
        bytes[range].lexicographicallyPrecedes(
            UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Whether the name in `a` comes before the one in `b`.
    private func isBefore(_ a: Range<Int>, _ b: Range<Int>) -> Bool {
        for offset in 0..<min(a.count, b.count) {
            let (one, other) = (bytes[a.lowerBound + offset], bytes[b.lowerBound + offset])
            if one != other { return one < other }
        }
        return a.count < b.count
    }
}
