import FoundationEssentials

/// Scans canonical JSON, the form that this project's writers produce, without creating values.
///
/// Canonical JSON is compact, has sorted keys and escapes only the characters that must be escaped. Senders copy such
/// text unchanged. Any other JSON throws ``JSONReader/NotCanonical``, and ``JSONReader`` or `JSONDecoder` reads it.
struct CanonicalJSONReader {
    let bytes: UnsafeBufferPointer<UInt8>
    private(set) var position: Int
    private var depth: Int

    /// Starts at `position` in `bytes`, inside `depth` arrays and objects.
    init(_ bytes: UnsafeBufferPointer<UInt8>, from position: Int, depth: Int) {
        self.bytes = bytes
        self.position = position
        self.depth = depth
    }

    /// Reads a whole body. Returns `nil` when the body is not canonical.
    @inline(__always)
    static func read<Value>(
        _ body: [UInt8], _ read: (inout CanonicalJSONReader) throws(JSONReader.NotCanonical) -> Value
    ) -> Value? {
        body.withUnsafeBufferPointer { bytes in
            var scan = CanonicalJSONReader(bytes, from: 0, depth: 0)
            do throws(JSONReader.NotCanonical) {
                let value = try read(&scan)
                guard scan.position == bytes.count else { return nil }
                return value
            } catch {
                return nil
            }
        }
    }

    /// Reads the next value with ``JSONReader``.
    mutating func withJSONReader<Value>(
        _ read: (inout JSONReader) throws(JSONReader.NotCanonical) -> Value
    ) throws(JSONReader.NotCanonical) -> Value {
        var reader = JSONReader(bytes, from: position, depth: depth)
        let value = try read(&reader)
        position = reader.position
        return value
    }

    /// Skips any value and returns its range.
    mutating func value() throws(JSONReader.NotCanonical) -> Range<Int> {
        let start = position
        guard position < bytes.count else { throw JSONReader.NotCanonical() }
        switch bytes[position] {
        case UInt8(ascii: "\""): return try string()
        case UInt8(ascii: "{"): try members { _ in }
        case UInt8(ascii: "["):
            try open(UInt8(ascii: "["))
            if !tryConsume(UInt8(ascii: "]")) {
                repeat { _ = try value() } while tryConsume(UInt8(ascii: ","))
                try expect(UInt8(ascii: "]"))
            }
            depth -= 1
        case UInt8(ascii: "t"): try literal("true")
        case UInt8(ascii: "f"): try literal("false")
        case UInt8(ascii: "n"): try literal("null")
        default: _ = try integer()
        }
        return start..<position
    }

    /// Reads an array that makes up most of the remaining bytes.
    @inline(__always)
    mutating func elements<Element>(
        _ read: (inout CanonicalJSONReader) throws(JSONReader.NotCanonical) -> Element
    ) throws(JSONReader.NotCanonical) -> [Element] {
        try open(UInt8(ascii: "["))
        defer { depth -= 1 }
        if tryConsume(UInt8(ascii: "]")) { return [] }
        let start = position
        // Most arrays have one element.
        var elements = [try read(&self)]
        while tryConsume(UInt8(ascii: ",")) {
            // Reserves capacity by the length of the first element.
            if elements.count == 1 {
                elements.reserveCapacity(1 + (bytes.count - position) / max(position - start, 16))
            }
            elements.append(try read(&self))
        }
        try expect(UInt8(ascii: "]"))
        return elements
    }

    /// Reads an array of UUIDs.
    @inline(__always)
    mutating func ids<Element>(_ make: (UUID) -> Element) throws(JSONReader.NotCanonical) -> [Element] {
        var elements: [Element] = []
        elements.reserveCapacity(numberOfIDs)
        _ = try rows { (scan, _) throws(JSONReader.NotCanonical) in elements.append(make(try scan.uuid())) }
        return elements
    }

    /// The number of UUIDs in the next array. Each takes 39 bytes, with its quotes and a comma.
    private var numberOfIDs: Int {
        let (first, width) = (position + 1, 39)
        var comma = first + width - 1
        while comma < bytes.count, bytes[comma] == UInt8(ascii: ",") { comma += width }
        return (comma - first) / width + 1
    }

    /// Reads an array, passing each element's index. Returns the number of elements.
    @inline(__always)
    mutating func rows(
        _ read: (inout CanonicalJSONReader, Int) throws(JSONReader.NotCanonical) -> Void
    ) throws(JSONReader.NotCanonical) -> Int {
        try open(UInt8(ascii: "["))
        defer { depth -= 1 }
        if tryConsume(UInt8(ascii: "]")) { return 0 }
        var row = 0
        repeat {
            try read(&self, row)
            row += 1
        } while tryConsume(UInt8(ascii: ","))
        try expect(UInt8(ascii: "]"))
        return row
    }

    /// Skips an object. Calls `see` with the range of each name, without quotes, before its value.
    mutating func members(_ see: (Range<Int>) throws(JSONReader.NotCanonical) -> Void) throws(JSONReader.NotCanonical) {
        try open(UInt8(ascii: "{"))
        if !tryConsume(UInt8(ascii: "}")) {
            var last: Range<Int>?
            repeat {
                let name = try name()
                if let last, !isBefore(last, name) { throw JSONReader.NotCanonical() }
                last = name
                try see(name)
                _ = try value()
            } while tryConsume(UInt8(ascii: ","))
            try expect(UInt8(ascii: "}"))
        }
        depth -= 1
    }

    /// Skips a member's name and the colon. Accepts ASCII names only, because other names may sort differently as
    /// text.
    mutating func name() throws(JSONReader.NotCanonical) -> Range<Int> {
        try expect(UInt8(ascii: "\""))
        let start = position
        let run = UnescapedRun(in: bytes, from: start)
        guard run.isASCII, run.end < bytes.count, bytes[run.end] == UInt8(ascii: "\"") else {
            throw JSONReader.NotCanonical()
        }
        position = run.end + 1
        try expect(UInt8(ascii: ":"))
        return start..<run.end
    }

    /// Skips a string and returns its range, quotes included.
    mutating func string() throws(JSONReader.NotCanonical) -> Range<Int> {
        let start = position
        try expect(UInt8(ascii: "\""))
        var isASCII = true
        while true {
            let run = UnescapedRun(in: bytes, from: position)
            isASCII = isASCII && run.isASCII
            guard run.end < bytes.count else { throw JSONReader.NotCanonical() }
            position = run.end + 1
            if bytes[run.end] == UInt8(ascii: "\"") { break }
            guard bytes[run.end] == UInt8(ascii: "\\") else { throw JSONReader.NotCanonical() }
            try escape()
        }
        if !isASCII, String(validating: UnsafeBufferPointer(rebasing: bytes[start..<position]), as: UTF8.self) == nil {
            throw JSONReader.NotCanonical()
        }
        return start..<position
    }

    /// Skips one escape. Accepts only the escapes that ``JSONByteWriter`` writes.
    private mutating func escape() throws(JSONReader.NotCanonical) {
        guard position < bytes.count else { throw JSONReader.NotCanonical() }
        switch bytes[position] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
            UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        default: throw JSONReader.NotCanonical()
        }
    }

    /// Reads a string.
    mutating func text() throws(JSONReader.NotCanonical) -> String {
        let start = position + 1
        guard isNext(UInt8(ascii: "\"")) else { throw JSONReader.NotCanonical() }
        let run = UnescapedRun(in: bytes, from: start)
        guard run.end < bytes.count, bytes[run.end] == UInt8(ascii: "\"") else {
            return try withJSONReader { (reader) throws(JSONReader.NotCanonical) in try reader.string() }
        }
        position = run.end + 1
        return try run.text(UnsafeBufferPointer(rebasing: bytes[start..<run.end]))
    }

    /// Reads a UUID in its canonical form.
    mutating func uuid() throws(JSONReader.NotCanonical) -> UUID {
        guard position + 38 <= bytes.count, bytes[position] == UInt8(ascii: "\""),
            bytes[position + 37] == UInt8(ascii: "\""),
            let id = Hexadecimal.uuid(UnsafeBufferPointer(rebasing: bytes[position + 1..<position + 37]))
        else { throw JSONReader.NotCanonical() }
        position += 38
        return id
    }

    mutating func bool() throws(JSONReader.NotCanonical) -> Bool {
        let isTrue = isNext(UInt8(ascii: "t"))
        try literal(isTrue ? "true" : "false")
        return isTrue
    }

    /// Reads a string that is a raw value of `Value`.
    mutating func enumValue<Value: RawRepresentable<String> & CaseIterable>(
        _: Value.Type
    ) throws(JSONReader.NotCanonical) -> Value {
        let text = try string()
        for value in Value.allCases where isText(value.rawValue, in: text.lowerBound + 1..<text.upperBound - 1) {
            return value
        }
        throw JSONReader.NotCanonical()
    }

    /// Reads a raw value of `Value`, or `null` as `nil`.
    mutating func optionalEnumValue<Value: RawRepresentable<String> & CaseIterable>(
        _: Value.Type
    ) throws(JSONReader.NotCanonical) -> Value? {
        try consumeNull() ? nil : try enumValue(Value.self)
    }

    /// Reads a string, or `null` as `nil`.
    mutating func optionalText() throws(JSONReader.NotCanonical) -> String? { try consumeNull() ? nil : try text() }

    /// Reads an integer, or `null` as `nil`.
    mutating func optionalInteger() throws(JSONReader.NotCanonical) -> Int64? {
        try consumeNull() ? nil : try integer()
    }

    /// Skips `null` if it is next. Returns whether it was.
    mutating func consumeNull() throws(JSONReader.NotCanonical) -> Bool {
        guard isNext(UInt8(ascii: "n")) else { return false }
        try literal("null")
        return true
    }

    /// Reads an integer of at most 18 digits, which cannot overflow.
    mutating func integer() throws(JSONReader.NotCanonical) -> Int64 {
        let isNegative = tryConsume(UInt8(ascii: "-"))
        let first = position
        var value: Int64 = 0
        while position < bytes.count, bytes[position] &- UInt8(ascii: "0") < 10 {
            value = value &* 10 &+ Int64(bytes[position] &- UInt8(ascii: "0"))
            position += 1
        }
        guard (1...18).contains(position - first), position - first == 1 || bytes[first] != UInt8(ascii: "0"),
            !isNegative || value != 0, position == bytes.count || !Self.continuesNumber(bytes[position])
        else { throw JSONReader.NotCanonical() }
        return isNegative ? -value : value
    }

    private static func continuesNumber(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ".") || byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E")
    }

    /// Skips `text`.
    mutating func literal(_ text: StaticString) throws(JSONReader.NotCanonical) {
        guard matches(text, at: position) else { throw JSONReader.NotCanonical() }
        position += text.utf8CodeUnitCount
    }

    /// Returns `count` bytes (at most 8) from `start` as a big-endian number. Returns `nil` within 8 bytes of the
    /// end.
    @inline(__always)
    func number(at start: Int, _ count: Int) -> UInt64? {
        guard start + 8 <= bytes.count else { return nil }
        let eight = UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: start, as: UInt64.self)
        return UInt64(bigEndian: eight) >> UInt64(64 - 8 * count)
    }

    /// Returns whether the bytes at `start` are `text`.
    @inline(__always)
    func matches(_ text: StaticString, at start: Int) -> Bool {
        matches(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount), at: start)
    }

    @inline(__always)
    private func matches(_ text: UnsafeBufferPointer<UInt8>, at start: Int) -> Bool {
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

    /// Returns whether `range` contains exactly `text`.
    func isText(_ text: StaticString, in range: Range<Int>) -> Bool {
        range.count == text.utf8CodeUnitCount && matches(text, at: range.lowerBound)
    }

    private func isText(_ text: String, in range: Range<Int>) -> Bool {
        var text = text
        return text.withUTF8 { $0.count == range.count && matches($0, at: range.lowerBound) }
    }

    /// Returns whether `byte` is next.
    @inline(__always)
    func isNext(_ byte: UInt8) -> Bool { position < bytes.count && bytes[position] == byte }

    /// Continues at `position`.
    mutating func jump(to position: Int) { self.position = position }

    /// Skips `byte` if it is next. Returns whether it was.
    mutating func tryConsume(_ byte: UInt8) -> Bool {
        guard isNext(byte) else { return false }
        position += 1
        return true
    }

    mutating func expect(_ byte: UInt8) throws(JSONReader.NotCanonical) {
        guard tryConsume(byte) else { throw JSONReader.NotCanonical() }
    }

    mutating func open(_ bracket: UInt8) throws(JSONReader.NotCanonical) {
        try expect(bracket)
        try enterContainer()
    }

    /// Increments the depth.
    mutating func enterContainer() throws(JSONReader.NotCanonical) {
        depth += 1
        guard depth <= WireCoding.maximumDepth else { throw JSONReader.NotCanonical() }
    }

    /// Decrements the depth.
    mutating func leaveContainer() { depth -= 1 }

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
