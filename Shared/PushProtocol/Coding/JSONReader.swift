/// Reads JSON straight into values, for the messages that every notification costs.
///
/// It reads what our own services write, and much more, but it words no errors: whatever it stumbles over, it leaves to
/// the general decoder (``WireCoding``), which decides whether that is a message after all. What it does read, the
/// general decoder reads to the same value.
struct JSONReader {
    /// Something the general decoder must judge.
    struct Unusual: Error {}

    private let bytes: UnsafeBufferPointer<UInt8>
    private(set) var place: Int
    private var depth: Int

    /// Begins at `place` in `bytes`, inside so many arrays and objects. `bytes` must outlive the reader.
    init(_ bytes: UnsafeBufferPointer<UInt8>, from place: Int = 0, depth: Int = 0) {
        self.bytes = bytes
        self.place = place
        self.depth = depth
    }

    // MARK: Structure

    /// Reads an object, handing each member's key to `member`, which must read or skip the value.
    mutating func object(
        _ member: (inout JSONReader, JSONKey) throws(Unusual) -> Void
    ) throws(Unusual) {
        try open(UInt8(ascii: "{"))
        if !closes(UInt8(ascii: "}")) {
            repeat {
                let key = try key()
                try expect(UInt8(ascii: ":"))
                try member(&self, key)
            } while takes(UInt8(ascii: ","))
            try expect(UInt8(ascii: "}"))
        }
        depth -= 1
    }

    /// Reads an array, calling `element` for each of its values.
    mutating func array(_ element: (inout JSONReader) throws(Unusual) -> Void) throws(Unusual) {
        try open(UInt8(ascii: "["))
        if !closes(UInt8(ascii: "]")) {
            repeat { try element(&self) } while takes(UInt8(ascii: ","))
            try expect(UInt8(ascii: "]"))
        }
        depth -= 1
    }

    /// Nothing but space may follow.
    mutating func end() throws(Unusual) {
        skipSpace()
        guard place == bytes.count else { throw Unusual() }
    }

    /// `nil` for `null`, or what `value` reads.
    mutating func optional<Value>(
        _ value: (inout JSONReader) throws(Unusual) -> Value
    ) throws(Unusual) -> Value? {
        skipSpace()
        guard place < bytes.count, bytes[place] == UInt8(ascii: "n") else { return try value(&self) }
        try word("null")
        return nil
    }

    // MARK: Values

    mutating func bool() throws(Unusual) -> Bool {
        skipSpace()
        guard place < bytes.count else { throw Unusual() }
        if bytes[place] == UInt8(ascii: "t") {
            try word("true")
            return true
        }
        try word("false")
        return false
    }

    mutating func integer() throws(Unusual) -> Int64 {
        skipSpace()
        let start = place
        let isNegative = place < bytes.count && bytes[place] == UInt8(ascii: "-")
        if isNegative { place += 1 }
        let first = place
        var value: Int64 = 0
        while place < bytes.count, bytes[place] &- UInt8(ascii: "0") < 10 {
            value = value &* 10 &+ Int64(bytes[place] &- UInt8(ascii: "0"))
            place += 1
        }
        // Eighteen digits cannot overflow; a zero may not lead; a fraction or exponent is no plain integer.
        guard (1...18).contains(place - first), place - first == 1 || bytes[first] != UInt8(ascii: "0"),
            !(place < bytes.count && Self.continuesNumber(bytes[place]))
        else {
            place = start
            throw Unusual()
        }
        return isNegative ? -value : value
    }

    private static func continuesNumber(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ".") || byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E")
    }

    mutating func string() throws(Unusual) -> String {
        try expect(UInt8(ascii: "\""))
        let start = place
        let run = PlainRun(in: bytes, from: start)
        place = run.end
        guard run.end < bytes.count else { throw Unusual() }
        switch bytes[run.end] {
        case UInt8(ascii: "\""):
            place += 1
            return try run.text(UnsafeBufferPointer(rebasing: bytes[start..<run.end]))
        case UInt8(ascii: "\\"): return try escapedString(from: start)
        default: throw Unusual()
        }
    }

    /// A text in which nothing is escaped, and that is only to be compared.
    mutating func word() throws(Unusual) -> JSONKey { try key() }

    /// A member's key, which has no escapes.
    private mutating func key() throws(Unusual) -> JSONKey {
        try expect(UInt8(ascii: "\""))
        let run = PlainRun(in: bytes, from: place)
        guard run.end < bytes.count, bytes[run.end] == UInt8(ascii: "\"") else { throw Unusual() }
        defer { place = run.end + 1 }
        return JSONKey(UnsafeBufferPointer(rebasing: bytes[place..<run.end]), run)
    }

    private mutating func escapedString(from start: Int) throws(Unusual) -> String {
        var text = Array(bytes[start..<place])
        while place < bytes.count {
            let byte = bytes[place]
            place += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: text, as: UTF8.self) else { throw Unusual() }
                return text
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0..<0x20: throw Unusual()
            default: text.append(byte)
            }
        }
        throw Unusual()
    }

    private mutating func escape(into text: inout [UInt8]) throws(Unusual) {
        guard place < bytes.count else { throw Unusual() }
        let byte = bytes[place]
        place += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "n"): text.append(0x0a)
        case UInt8(ascii: "r"): text.append(0x0d)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0c)
        case UInt8(ascii: "u"):
            // Surrogates, in pairs or alone, are the general decoder's.
            guard let scalar = Unicode.Scalar(try hexadecimal(digits: 4)) else { throw Unusual() }
            text.append(contentsOf: Array(String(Character(scalar)).utf8))
        default: throw Unusual()
        }
    }

    private mutating func hexadecimal(digits: Int) throws(Unusual) -> UInt32 {
        guard place + digits <= bytes.count else { throw Unusual() }
        var value: UInt32 = 0
        for _ in 0..<digits {
            guard let digit = Hexadecimal.value(bytes[place]) else { throw Unusual() }
            value = value << 4 | UInt32(digit)
            place += 1
        }
        return value
    }

    // MARK: Bytes

    private mutating func skipSpace() {
        while place < bytes.count {
            switch bytes[place] {
            case 0x20, 0x09, 0x0a, 0x0d: place += 1
            default: return
            }
        }
    }

    private mutating func open(_ bracket: UInt8) throws(Unusual) {
        try expect(bracket)
        depth += 1
        guard depth <= WireCoding.maximumDepth else { throw Unusual() }
    }

    /// Takes `bracket` when it follows at once, as in an empty object.
    private mutating func closes(_ bracket: UInt8) -> Bool { takes(bracket) }

    private mutating func takes(_ byte: UInt8) -> Bool {
        if place < bytes.count, bytes[place] == byte {
            place += 1
            return true
        }
        skipSpace()
        guard place < bytes.count, bytes[place] == byte else { return false }
        place += 1
        return true
    }

    private mutating func expect(_ byte: UInt8) throws(Unusual) {
        guard takes(byte) else { throw Unusual() }
    }

    private mutating func word(_ text: StaticString) throws(Unusual) {
        let count = text.utf8CodeUnitCount
        guard place + count <= bytes.count,
            UnsafeBufferPointer(rebasing: bytes[place..<place + count])
                .elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: count))
        else { throw Unusual() }
        place += count
    }

    /// The next value's first byte.
    private mutating func peek() throws(Unusual) -> UInt8 {
        skipSpace()
        guard place < bytes.count else { throw Unusual() }
        return bytes[place]
    }
}

extension JSONReader {
    /// Any value. Numbers that are no plain integers are the general decoder's.
    mutating func value() throws(Unusual) -> JSONValue {
        switch try peek() {
        case UInt8(ascii: "{"):
            var members: [String: JSONValue] = [:]
            try object { (reader, key) throws(Unusual) in
                guard members.updateValue(try reader.value(), forKey: try key.text()) == nil else { throw Unusual() }
            }
            return .object(members)
        case UInt8(ascii: "["):
            var elements: [JSONValue] = []
            try array { (reader) throws(Unusual) in elements.append(try reader.value()) }
            return .array(elements)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool(try bool())
        case UInt8(ascii: "n"):
            try word("null")
            return .null
        default: return .int(try integer())
        }
    }

    /// Passes over the member `key`, which nobody reads.
    mutating func skip(_ key: JSONKey) throws(Unusual) {
        _ = try key.text()
        _ = try value()
    }
}

extension JSONValue {
    /// Reads a text without the general decoder, to the same value; `nil` leaves it to that one.
    static func read(_ text: [UInt8]) -> JSONValue? {
        text.withUnsafeBufferPointer { bytes in
            var reader = JSONReader(bytes)
            do throws(JSONReader.Unusual) {
                let value = try reader.value()
                try reader.end()
                return value
            } catch {
                return nil
            }
        }
    }
}

/// A member's key, in the bytes it was read from.
struct JSONKey {
    private let bytes: UnsafeBufferPointer<UInt8>
    private let run: PlainRun

    fileprivate init(_ bytes: UnsafeBufferPointer<UInt8>, _ run: PlainRun) {
        self.bytes = bytes
        self.run = run
    }

    func isText(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { text in
            guard text.count == bytes.count else { return false }
            for place in 0..<bytes.count where bytes[place] != text[place] { return false }
            return true
        }
    }

    static func ~= (name: StaticString, key: JSONKey) -> Bool {
        guard key.bytes.count == name.utf8CodeUnitCount else { return false }
        for place in 0..<key.bytes.count where key.bytes[place] != name.utf8Start[place] { return false }
        return true
    }

    func text() throws(JSONReader.Unusual) -> String { try run.text(bytes) }
}
