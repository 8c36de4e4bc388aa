/// Reads JSON into values without `JSONDecoder`, for messages on the hot path.
///
/// Throws ``NotCanonical`` for input that it does not handle. The caller then decodes with `JSONDecoder`, which
/// produces the error text. Both produce equal values.
package struct JSONReader {
    /// The input must be decoded with `JSONDecoder`.
    package struct NotCanonical: Error {
        package init() {}
    }

    private let bytes: UnsafeBufferPointer<UInt8>
    package private(set) var position: Int
    /// The number of arrays and objects that may still be opened.
    private var levels: Int

    /// Starts at `position` in `bytes`, inside `depth` arrays and objects. `bytes` must outlive the reader.
    init(_ bytes: UnsafeBufferPointer<UInt8>, from position: Int = 0, depth: Int = 0) {
        self.bytes = bytes
        self.position = position
        levels = WireCoding.maximumDepth - depth
    }

    /// Accepts other nesting than messages have. `bytes` must outlive the reader.
    package init(_ bytes: UnsafeBufferPointer<UInt8>, maximumDepth: Int) {
        self.bytes = bytes
        position = 0
        levels = maximumDepth
    }

    // MARK: Structure

    /// Reads an object. Calls `member` with each key; it must read or skip the value.
    mutating func object(
        _ member: (inout JSONReader, JSONKey) throws(NotCanonical) -> Void
    ) throws(NotCanonical) {
        try open(UInt8(ascii: "{"))
        if !closes(UInt8(ascii: "}")) {
            repeat {
                let key = try key()
                try expect(UInt8(ascii: ":"))
                try member(&self, key)
            } while tryConsume(UInt8(ascii: ","))
            try expect(UInt8(ascii: "}"))
        }
        levels += 1
    }

    /// Reads an object. Calls `member` with each name; it must read the value. Accepts escapes in names.
    package mutating func members(
        _ member: (inout JSONReader, String) throws(NotCanonical) -> Void
    ) throws(NotCanonical) {
        try open(UInt8(ascii: "{"))
        if !closes(UInt8(ascii: "}")) {
            repeat {
                let name = try string()
                try expect(UInt8(ascii: ":"))
                try member(&self, name)
            } while tryConsume(UInt8(ascii: ","))
            try expect(UInt8(ascii: "}"))
        }
        levels += 1
    }

    /// Reads an array. Calls `element` for each value.
    package mutating func array(_ element: (inout JSONReader) throws(NotCanonical) -> Void) throws(NotCanonical) {
        try open(UInt8(ascii: "["))
        if !closes(UInt8(ascii: "]")) {
            repeat { try element(&self) } while tryConsume(UInt8(ascii: ","))
            try expect(UInt8(ascii: "]"))
        }
        levels += 1
    }

    /// Throws unless only whitespace follows.
    package mutating func end() throws(NotCanonical) {
        skipSpace()
        guard position == bytes.count else { throw NotCanonical() }
    }

    /// Reads `null` as `nil`, any other value with `value`.
    mutating func optional<Value>(
        _ value: (inout JSONReader) throws(NotCanonical) -> Value
    ) throws(NotCanonical) -> Value? {
        skipSpace()
        guard position < bytes.count, bytes[position] == UInt8(ascii: "n") else { return try value(&self) }
        try literal("null")
        return nil
    }

    // MARK: Values

    mutating func bool() throws(NotCanonical) -> Bool {
        skipSpace()
        guard position < bytes.count else { throw NotCanonical() }
        if bytes[position] == UInt8(ascii: "t") {
            try literal("true")
            return true
        }
        try literal("false")
        return false
    }

    package mutating func integer() throws(NotCanonical) -> Int64 {
        skipSpace()
        let start = position
        let isNegative = position < bytes.count && bytes[position] == UInt8(ascii: "-")
        if isNegative { position += 1 }
        let first = position
        var value: Int64 = 0
        while position < bytes.count, bytes[position] &- UInt8(ascii: "0") < 10 {
            value = value &* 10 &+ Int64(bytes[position] &- UInt8(ascii: "0"))
            position += 1
        }
        // 18 digits cannot overflow. Leading zeros, fractions and exponents are not handled.
        guard (1...18).contains(position - first), position - first == 1 || bytes[first] != UInt8(ascii: "0"),
            !(position < bytes.count && Self.continuesNumber(bytes[position]))
        else {
            position = start
            throw NotCanonical()
        }
        return isNegative ? -value : value
    }

    private static func continuesNumber(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ".") || byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E")
    }

    package mutating func string() throws(NotCanonical) -> String {
        try expect(UInt8(ascii: "\""))
        let start = position
        let run = UnescapedRun(in: bytes, from: start)
        position = run.end
        guard run.end < bytes.count else { throw NotCanonical() }
        switch bytes[run.end] {
        case UInt8(ascii: "\""):
            position += 1
            return try run.text(UnsafeBufferPointer(rebasing: bytes[start..<run.end]))
        case UInt8(ascii: "\\"): return try escapedString(from: start)
        default: throw NotCanonical()
        }
    }

    /// Reads a string without escapes, for comparison only.
    mutating func unescapedString() throws(NotCanonical) -> JSONKey { try key() }

    /// Reads a key without escapes.
    private mutating func key() throws(NotCanonical) -> JSONKey {
        try expect(UInt8(ascii: "\""))
        let run = UnescapedRun(in: bytes, from: position)
        guard run.end < bytes.count, bytes[run.end] == UInt8(ascii: "\"") else { throw NotCanonical() }
        defer { position = run.end + 1 }
        return JSONKey(UnsafeBufferPointer(rebasing: bytes[position..<run.end]), run)
    }

    private mutating func escapedString(from start: Int) throws(NotCanonical) -> String {
        var text = Array(bytes[start..<position])
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: text, as: UTF8.self) else { throw NotCanonical() }
                return text
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0..<0x20: throw NotCanonical()
            default: text.append(byte)
            }
        }
        throw NotCanonical()
    }

    private mutating func escape(into text: inout [UInt8]) throws(NotCanonical) {
        guard position < bytes.count else { throw NotCanonical() }
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
        default: throw NotCanonical()
        }
    }

    /// Reads the digits of a Unicode escape, or of a surrogate pair of them.
    private mutating func scalar() throws(NotCanonical) -> Unicode.Scalar {
        let first = try hexadecimal(digits: 4)
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xdc00, position + 2 <= bytes.count, bytes[position] == UInt8(ascii: "\\"),
            bytes[position + 1] == UInt8(ascii: "u")
        else { throw NotCanonical() }
        position += 2
        let second = try hexadecimal(digits: 4)
        guard (0xdc00..<0xe000).contains(second),
            let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
        else { throw NotCanonical() }
        return scalar
    }

    private mutating func hexadecimal(digits: Int) throws(NotCanonical) -> UInt32 {
        guard position + digits <= bytes.count else { throw NotCanonical() }
        var value: UInt32 = 0
        for _ in 0..<digits {
            guard let digit = Hexadecimal.value(bytes[position]) else { throw NotCanonical() }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }

    // MARK: Bytes

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

    private mutating func open(_ bracket: UInt8) throws(NotCanonical) {
        try expect(bracket)
        levels -= 1
        guard levels >= 0 else { throw NotCanonical() }
    }

    /// Skips `bracket` if it is next, as in an empty object.
    private mutating func closes(_ bracket: UInt8) -> Bool { tryConsume(bracket) }

    private mutating func tryConsume(_ byte: UInt8) -> Bool {
        if position < bytes.count, bytes[position] == byte {
            position += 1
            return true
        }
        skipSpace()
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    private mutating func expect(_ byte: UInt8) throws(NotCanonical) {
        guard tryConsume(byte) else { throw NotCanonical() }
    }

    private mutating func literal(_ text: StaticString) throws(NotCanonical) {
        let count = text.utf8CodeUnitCount
        guard position + count <= bytes.count,
            UnsafeBufferPointer(rebasing: bytes[position..<position + count])
                .elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: count))
        else { throw NotCanonical() }
        position += count
    }

    /// The first byte of the next value.
    package mutating func peek() throws(NotCanonical) -> UInt8 {
        skipSpace()
        guard position < bytes.count else { throw NotCanonical() }
        return bytes[position]
    }
}

extension JSONReader {
    /// Reads any value. Numbers other than integers are not handled.
    package mutating func value() throws(NotCanonical) -> JSONValue {
        switch try peek() {
        case UInt8(ascii: "{"):
            var members: [String: JSONValue] = [:]
            try object { (reader, key) throws(NotCanonical) in
                guard members.updateValue(try reader.value(), forKey: try key.text()) == nil else {
                    throw NotCanonical()
                }
            }
            return .object(members)
        case UInt8(ascii: "["):
            var elements: [JSONValue] = []
            try array { (reader) throws(NotCanonical) in elements.append(try reader.value()) }
            return .array(elements)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool(try bool())
        case UInt8(ascii: "n"):
            try literal("null")
            return .null
        default: return .int(try integer())
        }
    }

    /// Skips the value of an unknown member.
    mutating func skip(_ key: JSONKey) throws(NotCanonical) {
        _ = try key.text()
        _ = try value()
    }
}

extension JSONValue {
    /// Decodes `text` without `JSONDecoder`; `nil` when it must be decoded with it.
    static func fastDecoded(_ text: [UInt8]) -> JSONValue? {
        text.withUnsafeBufferPointer { bytes in
            var reader = JSONReader(bytes)
            do throws(JSONReader.NotCanonical) {
                let value = try reader.value()
                try reader.end()
                return value
            } catch {
                return nil
            }
        }
    }
}

/// A member's key, as a view of the input.
struct JSONKey {
    private let bytes: UnsafeBufferPointer<UInt8>
    private let run: UnescapedRun

    fileprivate init(_ bytes: UnsafeBufferPointer<UInt8>, _ run: UnescapedRun) {
        self.bytes = bytes
        self.run = run
    }

    func isText(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { text in
            guard text.count == bytes.count else { return false }
            for position in 0..<bytes.count where bytes[position] != text[position] { return false }
            return true
        }
    }

    static func ~= (name: StaticString, key: JSONKey) -> Bool {
        guard key.bytes.count == name.utf8CodeUnitCount else { return false }
        for position in 0..<key.bytes.count where key.bytes[position] != name.utf8Start[position] { return false }
        return true
    }

    func text() throws(JSONReader.NotCanonical) -> String { try run.text(bytes) }
}
