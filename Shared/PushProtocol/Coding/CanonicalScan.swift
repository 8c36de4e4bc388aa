import FoundationEssentials

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

    /// Reads a whole body; `nil` leaves it to the general decoder.
    @inline(__always)
    static func read<Value>(
        _ body: [UInt8], _ read: (inout CanonicalScan) throws(JSONReader.Unusual) -> Value
    ) -> Value? {
        body.withUnsafeBufferPointer { bytes in
            var scan = CanonicalScan(bytes, from: 0, depth: 0)
            do throws(JSONReader.Unusual) {
                let value = try read(&scan)
                guard scan.place == bytes.count else { return nil }
                return value
            } catch {
                return nil
            }
        }
    }

    /// Reads what comes next with the reader that reads more.
    mutating func reading<Value>(
        _ read: (inout JSONReader) throws(JSONReader.Unusual) -> Value
    ) throws(JSONReader.Unusual) -> Value {
        var reader = JSONReader(bytes, from: place, depth: depth)
        let value = try read(&reader)
        place = reader.place
        return value
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

    /// Reads an array whose elements are most of what is left.
    @inline(__always)
    mutating func elements<Element>(
        _ read: (inout CanonicalScan) throws(JSONReader.Unusual) -> Element
    ) throws(JSONReader.Unusual) -> [Element] {
        try open(UInt8(ascii: "["))
        defer { depth -= 1 }
        if takes(UInt8(ascii: "]")) { return [] }
        let start = place
        // Most have one element.
        var elements = [try read(&self)]
        while takes(UInt8(ascii: ",")) {
            // The others are about as long.
            if elements.count == 1 { elements.reserveCapacity(1 + (bytes.count - place) / max(place - start, 16)) }
            elements.append(try read(&self))
        }
        try expect(UInt8(ascii: "]"))
        return elements
    }

    /// Reads an array of ids.
    @inline(__always)
    mutating func ids<Element>(_ make: (UUID) -> Element) throws(JSONReader.Unusual) -> [Element] {
        var elements: [Element] = []
        elements.reserveCapacity(numberOfIDs)
        _ = try rows { (scan, _) throws(JSONReader.Unusual) in elements.append(make(try scan.uuid())) }
        return elements
    }

    /// How many the array that comes next has: all are as long, and have a comma behind them but for the last.
    private var numberOfIDs: Int {
        let (first, width) = (place + 1, 39)
        var comma = first + width - 1
        while comma < bytes.count, bytes[comma] == UInt8(ascii: ",") { comma += width }
        return (comma - first) / width + 1
    }

    /// Goes through an array, with the place of each element; returns how many there are.
    @inline(__always)
    mutating func rows(
        _ read: (inout CanonicalScan, Int) throws(JSONReader.Unusual) -> Void
    ) throws(JSONReader.Unusual) -> Int {
        try open(UInt8(ascii: "["))
        defer { depth -= 1 }
        if takes(UInt8(ascii: "]")) { return 0 }
        var row = 0
        repeat {
            try read(&self, row)
            row += 1
        } while takes(UInt8(ascii: ","))
        try expect(UInt8(ascii: "]"))
        return row
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

    /// Reads a string.
    mutating func text() throws(JSONReader.Unusual) -> String {
        let start = place + 1
        guard isNext(UInt8(ascii: "\"")) else { throw JSONReader.Unusual() }
        let run = PlainRun(in: bytes, from: start)
        guard run.end < bytes.count, bytes[run.end] == UInt8(ascii: "\"") else {
            return try reading { (reader) throws(JSONReader.Unusual) in try reader.string() }
        }
        place = run.end + 1
        return try run.text(UnsafeBufferPointer(rebasing: bytes[start..<run.end]))
    }

    /// Reads an id in its canonical form.
    mutating func uuid() throws(JSONReader.Unusual) -> UUID {
        guard place + 38 <= bytes.count, bytes[place] == UInt8(ascii: "\""), bytes[place + 37] == UInt8(ascii: "\""),
            let id = Hexadecimal.uuid(UnsafeBufferPointer(rebasing: bytes[place + 1..<place + 37]))
        else { throw JSONReader.Unusual() }
        place += 38
        return id
    }

    mutating func bool() throws(JSONReader.Unusual) -> Bool {
        let isTrue = isNext(UInt8(ascii: "t"))
        try word(isTrue ? "true" : "false")
        return isTrue
    }

    /// Reads one of the words that `Word` has.
    mutating func word<Word: RawRepresentable<String> & CaseIterable>(
        _: Word.Type
    ) throws(JSONReader.Unusual) -> Word {
        let text = try string()
        for word in Word.allCases where isText(word.rawValue, in: text.lowerBound + 1..<text.upperBound - 1) {
            return word
        }
        throw JSONReader.Unusual()
    }

    /// The same, or `nil` for `null`.
    mutating func optionalWord<Word: RawRepresentable<String> & CaseIterable>(
        _: Word.Type
    ) throws(JSONReader.Unusual) -> Word? {
        try takesNull() ? nil : try word(Word.self)
    }

    /// The same as ``text()``, or `nil` for `null`.
    mutating func optionalText() throws(JSONReader.Unusual) -> String? { try takesNull() ? nil : try text() }

    /// The same as ``integer()``, or `nil` for `null`.
    mutating func optionalInteger() throws(JSONReader.Unusual) -> Int64? { try takesNull() ? nil : try integer() }

    /// Passes over `null` where it follows.
    mutating func takesNull() throws(JSONReader.Unusual) -> Bool {
        guard isNext(UInt8(ascii: "n")) else { return false }
        try word("null")
        return true
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

    /// The `count` bytes at `start` as one number, the first of them in the highest byte: at most eight; `nil` close to the
    /// end.
    @inline(__always)
    func number(at start: Int, _ count: Int) -> UInt64? {
        guard start + 8 <= bytes.count else { return nil }
        let eight = UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: start, as: UInt64.self)
        return UInt64(bigEndian: eight) >> UInt64(64 - 8 * count)
    }

    /// Whether `text` stands at `start`.
    @inline(__always)
    func holds(_ text: StaticString, at start: Int) -> Bool {
        holds(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount), at: start)
    }

    @inline(__always)
    private func holds(_ text: UnsafeBufferPointer<UInt8>, at start: Int) -> Bool {
        let count = text.count
        guard start + count <= bytes.count else { return false }
        let (here, text) = (UnsafeRawBufferPointer(bytes), UnsafeRawBufferPointer(text))
        var offset = 0
        while offset + 8 <= count {
            guard
                here.loadUnaligned(fromByteOffset: start + offset, as: UInt64.self)
                    == text.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            else { return false }
            offset += 8
        }
        while offset < count {
            guard here[start + offset] == text[offset] else { return false }
            offset += 1
        }
        return true
    }

    /// Whether `text` is all that stands in `range`.
    func isText(_ text: StaticString, in range: Range<Int>) -> Bool {
        range.count == text.utf8CodeUnitCount && holds(text, at: range.lowerBound)
    }

    private func isText(_ text: String, in range: Range<Int>) -> Bool {
        var text = text
        return text.withUTF8 { $0.count == range.count && holds($0, at: range.lowerBound) }
    }

    /// Whether `byte` follows.
    @inline(__always)
    func isNext(_ byte: UInt8) -> Bool { place < bytes.count && bytes[place] == byte }

    /// Goes on at `place`, which was looked at.
    mutating func jump(to place: Int) { self.place = place }

    /// Takes `byte` when it follows.
    mutating func takes(_ byte: UInt8) -> Bool {
        guard isNext(byte) else { return false }
        place += 1
        return true
    }

    mutating func expect(_ byte: UInt8) throws(JSONReader.Unusual) {
        guard takes(byte) else { throw JSONReader.Unusual() }
    }

    mutating func open(_ bracket: UInt8) throws(JSONReader.Unusual) {
        try expect(bracket)
        try deepen()
    }

    /// Enters an array or an object.
    mutating func deepen() throws(JSONReader.Unusual) {
        depth += 1
        guard depth <= WireCoding.maximumDepth else { throw JSONReader.Unusual() }
    }

    /// Leaves one.
    mutating func rise() { depth -= 1 }

    /// Whether the name in `range` comes before `text`.
    func isBefore(_ range: Range<Int>, _ text: StaticString) -> Bool {
        bytes[range].lexicographicallyPrecedes(
            UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Whether the name in `a` comes before the one in `b`.
    func isBefore(_ a: Range<Int>, _ b: Range<Int>) -> Bool {
        for offset in 0..<min(a.count, b.count) {
            let (one, other) = (bytes[a.lowerBound + offset], bytes[b.lowerBound + offset])
            if one != other { return one < other }
        }
        return a.count < b.count
    }
}
