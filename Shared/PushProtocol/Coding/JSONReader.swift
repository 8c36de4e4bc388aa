/// Reads JSON (RFC 8259) into values. Throws ``Unreadable`` for any other text, and for a value of another type.
///
/// In the module of its messages: from `Primitives`, reading a push took 24,700 instructions and not 11,800.
package struct JSONReader {
    /// The input is not JSON, or not the JSON that the caller expects. The reader's ``position`` is at the fault.
    package struct Unreadable: Error {
        /// A required member that is absent, with its quotes and colon.
        package let missing: StaticString?

        package init(missing: StaticString? = nil) { self.missing = missing }
    }

    let bytes: UnsafeBufferPointer<UInt8>
    package internal(set) var position: Int
    /// The number of arrays and objects that may still be opened.
    private var levels: Int

    /// `bytes` must outlive the reader.
    package init(
        _ bytes: UnsafeBufferPointer<UInt8>, from position: Int = 0, maximumDepth: Int = WireCoding.maximumDepth
    ) {
        self.bytes = bytes
        self.position = position
        levels = maximumDepth
    }

    /// Reads a whole body. Returns `nil` when it is not readable.
    @inline(__always)
    package static func read<Value>(
        _ body: [UInt8], maximumDepth: Int = WireCoding.maximumDepth,
        _ read: (inout JSONReader) throws(Unreadable) -> Value
    ) -> Value? {
        body.withUnsafeBufferPointer { bytes in
            var reader = JSONReader(bytes, maximumDepth: maximumDepth)
            do throws(Unreadable) {
                let value = try read(&reader)
                try reader.end()
                return value
            } catch {
                return nil
            }
        }
    }

    // MARK: Structure

    /// Reads an object. Calls `member` with each name; it must read the value.
    package mutating func members(
        _ member: (inout JSONReader, String) throws(Unreadable) -> Void
    ) throws(Unreadable) {
        try open(UInt8(ascii: "{"))
        if !tryConsume(UInt8(ascii: "}")) {
            repeat {
                let name = try string()
                try expect(UInt8(ascii: ":"))
                try member(&self, name)
            } while tryConsume(UInt8(ascii: ","))
            try expect(UInt8(ascii: "}"))
        }
        leaveContainer()
    }

    /// Reads an array. Calls `element` for each value.
    @inline(__always)
    package mutating func array(_ element: (inout JSONReader) throws(Unreadable) -> Void) throws(Unreadable) {
        try open(UInt8(ascii: "["))
        if !tryConsume(UInt8(ascii: "]")) {
            repeat { try element(&self) } while tryConsume(UInt8(ascii: ","))
            try expect(UInt8(ascii: "]"))
        }
        leaveContainer()
    }

    /// Throws unless only whitespace follows.
    package mutating func end() throws(Unreadable) {
        skipSpace()
        guard position == bytes.count else { throw Unreadable() }
    }

    // MARK: Values

    package mutating func bool() throws(Unreadable) -> Bool {
        let isTrue = try peek() == UInt8(ascii: "t")
        try literal(isTrue ? "true" : "false")
        return isTrue
    }

    /// Skips `null` if it is next. Returns whether it was.
    package mutating func consumeNull() throws(Unreadable) -> Bool {
        guard try peek() == UInt8(ascii: "n") else { return false }
        try literal("null")
        return true
    }

    package mutating func integer() throws(Unreadable) -> Int64 {
        let isNegative = try peek() == UInt8(ascii: "-")
        let start = position
        if isNegative { position += 1 }
        let first = position
        var value: Int64 = 0
        while position < bytes.count, bytes[position] &- UInt8(ascii: "0") < 10 {
            value = value &* 10 &+ Int64(bytes[position] &- UInt8(ascii: "0"))
            position += 1
        }
        guard position > first, position - first == 1 || bytes[first] != UInt8(ascii: "0"),
            position == bytes.count || !Self.continuesNumber(bytes[position])
        else {
            position = start
            throw Unreadable()
        }
        // 18 digits cannot overflow.
        if position - first <= 18 { return isNegative ? -value : value }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        guard let long = Int64(text) else {
            position = start
            throw Unreadable()
        }
        return long
    }

    private static func continuesNumber(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ".") || byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E")
    }

    /// Reads any number. Whole numbers of 64 bits become integers, as `JSONDecoder` decodes them.
    private mutating func number() throws(Unreadable) -> JSONValue {
        if let whole = try? integer() { return .int(whole) }
        let start = position
        if bytes[position] == UInt8(ascii: "-") { position += 1 }
        let first = position
        guard skipDigits() > 0, position - first == 1 || bytes[first] != UInt8(ascii: "0") else { throw Unreadable() }
        if isNext(UInt8(ascii: ".")) {
            position += 1
            guard skipDigits() > 0 else { throw Unreadable() }
        }
        if isNext(UInt8(ascii: "e")) || isNext(UInt8(ascii: "E")) {
            position += 1
            if isNext(UInt8(ascii: "+")) || isNext(UInt8(ascii: "-")) { position += 1 }
            guard skipDigits() > 0 else { throw Unreadable() }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if let whole = Self.whole(text) { return .int(whole) }
        guard let double = Double(text), double.isFinite else { throw Unreadable() }
        return .double(double)
    }

    /// The exact value of a number with a fraction or an exponent, if it is an integer of 64 bits.
    private static func whole(_ text: String) -> Int64? {
        let parts = text.split { $0 == "e" || $0 == "E" }
        let mantissa = parts[0].split(separator: ".")
        let fraction = mantissa.count > 1 ? mantissa[1] : ""
        guard var zeros = parts.count > 1 ? Int(parts[1]) : 0 else { return nil }
        zeros -= fraction.count
        var digits = mantissa[0] + fraction
        while zeros < 0, digits.count > 1, digits.last == "0" {
            digits.removeLast()
            zeros += 1
        }
        // 20 characters hold every integer of 64 bits, with its sign.
        guard zeros >= 0, zeros <= 20, digits.count + zeros <= 20 else { return nil }
        return Int64(digits + String(repeating: "0", count: zeros))
    }

    private mutating func skipDigits() -> Int {
        bytes { $0 &- UInt8(ascii: "0") < 10 }.count
    }

    package mutating func string() throws(Unreadable) -> String {
        try expect(UInt8(ascii: "\""))
        let start = position
        let run = UnescapedRun(in: bytes, from: start)
        position = run.end
        guard run.end < bytes.count else { throw Unreadable() }
        guard bytes[run.end] == UInt8(ascii: "\"") else { return try escapedString(from: start) }
        position += 1
        return try run.text(UnsafeBufferPointer(rebasing: bytes[start..<run.end]))
    }

    private mutating func escapedString(from start: Int) throws(Unreadable) -> String {
        var text = Array(bytes[start..<position])
        while position < bytes.count {
            let byte = bytes[position]
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: text, as: UTF8.self) else { throw Unreadable() }
                position += 1
                return text
            case UInt8(ascii: "\\"):
                position += 1
                try escape(into: &text)
            case 0..<0x20: throw Unreadable()
            default:
                text.append(byte)
                position += 1
            }
        }
        throw Unreadable()
    }

    private mutating func escape(into text: inout [UInt8]) throws(Unreadable) {
        guard position < bytes.count else { throw Unreadable() }
        let byte = bytes[position]
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "n"): text.append(0x0a)
        case UInt8(ascii: "r"): text.append(0x0d)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0c)
        case UInt8(ascii: "u"): text.append(contentsOf: Array(String(Character(try scalar())).utf8))
        default: throw Unreadable()
        }
    }

    /// Reads the digits of a Unicode escape, or of a surrogate pair of them.
    private mutating func scalar() throws(Unreadable) -> Unicode.Scalar {
        let first = try hexadecimal(digits: 4)
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xdc00, matches(#"\u"#, at: position) else { throw Unreadable() }
        position += 2
        let second = try hexadecimal(digits: 4)
        guard (0xdc00..<0xe000).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
        else { throw Unreadable() }
        return scalar
    }

    private mutating func hexadecimal(digits: Int) throws(Unreadable) -> UInt32 {
        guard position + digits <= bytes.count else { throw Unreadable() }
        var value: UInt32 = 0
        for _ in 0..<digits {
            guard let digit = Hexadecimal.value(bytes[position]) else { throw Unreadable() }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }

    /// Reads any value. The first of duplicate members counts.
    package mutating func value() throws(Unreadable) -> JSONValue {
        switch try peek() {
        case UInt8(ascii: "{"):
            var members: [String: JSONValue] = [:]
            try self.members { (reader, name) throws(Unreadable) in
                let value = try reader.value()
                if let first = members.updateValue(value, forKey: name) { members[name] = first }
            }
            return .object(members)
        case UInt8(ascii: "["):
            var elements: [JSONValue] = []
            try array { (reader) throws(Unreadable) in elements.append(try reader.value()) }
            return .array(elements)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool(try bool())
        case UInt8(ascii: "n"):
            try literal("null")
            return .null
        default: return try number()
        }
    }

    // MARK: Bytes

    /// The first byte of the next value.
    @inline(__always)
    package mutating func peek() throws(Unreadable) -> UInt8 {
        if position < bytes.count, bytes[position] > 0x20 { return bytes[position] }
        skipSpace()
        guard position < bytes.count else { throw Unreadable() }
        return bytes[position]
    }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0a, 0x0d: position += 1
            default: return
            }
        }
    }

    /// Skips the bytes that satisfy `isPart`, and returns them.
    package mutating func bytes(while isPart: (UInt8) -> Bool) -> UnsafeBufferPointer<UInt8> {
        let start = position
        while position < bytes.count, isPart(bytes[position]) { position += 1 }
        return UnsafeBufferPointer(rebasing: bytes[start..<position])
    }

    mutating func open(_ bracket: UInt8) throws(Unreadable) {
        try expect(bracket)
        try enterContainer()
    }

    mutating func enterContainer() throws(Unreadable) {
        levels -= 1
        guard levels >= 0 else { throw Unreadable() }
    }

    mutating func leaveContainer() { levels += 1 }

    /// Returns whether `byte` is next, without whitespace before it.
    @inline(__always)
    func isNext(_ byte: UInt8) -> Bool { position < bytes.count && bytes[position] == byte }

    /// Skips `byte` if it is next. Returns whether it was.
    @inline(__always)
    mutating func tryConsume(_ byte: UInt8) -> Bool {
        if !isNext(byte) {
            skipSpace()
            guard isNext(byte) else { return false }
        }
        position += 1
        return true
    }

    @inline(__always)
    mutating func expect(_ byte: UInt8) throws(Unreadable) {
        guard tryConsume(byte) else { throw Unreadable() }
    }

    /// Skips `text`.
    @inline(__always)
    mutating func literal(_ text: StaticString) throws(Unreadable) {
        guard matches(text, at: position) else { throw Unreadable() }
        position += text.utf8CodeUnitCount
    }

    /// Returns whether the bytes at `start` are `text`.
    @inline(__always)
    func matches(_ text: StaticString, at start: Int) -> Bool {
        matches(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount), at: start)
    }

    @inline(__always)
    func matches(_ text: UnsafeBufferPointer<UInt8>, at start: Int) -> Bool {
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
}
