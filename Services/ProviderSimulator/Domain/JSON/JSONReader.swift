import PushProtocol

/// Reads JSON as both providers do: strict RFC 8259, the last of duplicate members wins, and at most ``maximumDepth``
/// levels.
///
/// Faster than `WireCoding`: Foundation's decoder needs ten times as long for a value without a fixed type, and a
/// simulator under load parses every body.
struct JSONReader {
    /// The maximum nesting of arrays and objects.
    static let maximumDepth = 64

    /// The position and reason of a syntax error.
    struct Failure: Error, Equatable {
        let offset: Int
        let problem: String
    }

    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0

    private init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// Parses the single value in `body`.
    static func value(of body: some Sequence<UInt8>) throws(Failure) -> JSONValue {
        let result: Result<JSONValue, Failure> =
            body.withContiguousStorageIfAvailable(read) ?? Array(body).withUnsafeBufferPointer(read)
        return try result.get()
    }

    private static func read(_ bytes: UnsafeBufferPointer<UInt8>) -> Result<JSONValue, Failure> {
        Result { () throws(Failure) in
            var reader = JSONReader(bytes)
            let value = try reader.value(depth: 0)
            reader.skipSpace()
            guard reader.position == bytes.count else { throw reader.failure("text after the value") }
            return value
        }
    }

    private func failure(_ problem: String) -> Failure { Failure(offset: position, problem: problem) }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { position += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func value(depth: Int) throws(Failure) -> JSONValue {
        skipSpace()
        switch next {
        case UInt8(ascii: "{"): return try object(depth: depth + 1)
        case UInt8(ascii: "["): return try array(depth: depth + 1)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case .some(UInt8(ascii: "-")), .some(UInt8(ascii: "0")...UInt8(ascii: "9")): return try number()
        case nil: throw failure("the text ends where a value should be")
        default: throw failure("not a value")
        }
    }

    private mutating func object(depth: Int) throws(Failure) -> JSONValue {
        guard depth <= Self.maximumDepth else { throw failure("nests too deep") }
        position += 1
        var members: [String: JSONValue] = [:]
        skipSpace()
        if take(UInt8(ascii: "}")) { return .object(members) }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw failure("a member's name should be here") }
            let name = try string()
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw failure("a colon should be here") }
            members[name] = try value(depth: depth)
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            guard take(UInt8(ascii: "}")) else { throw failure("a comma or } should be here") }
            return .object(members)
        }
    }

    private mutating func array(depth: Int) throws(Failure) -> JSONValue {
        guard depth <= Self.maximumDepth else { throw failure("nests too deep") }
        position += 1
        var elements: [JSONValue] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return .array(elements) }
        while true {
            elements.append(try value(depth: depth))
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            guard take(UInt8(ascii: "]")) else { throw failure("a comma or ] should be here") }
            return .array(elements)
        }
    }

    private mutating func literal(_ word: StaticString, _ value: JSONValue) throws(Failure) -> JSONValue {
        let count = word.utf8CodeUnitCount
        guard position + count <= bytes.count else { throw failure("not a value") }
        for index in 0..<count where bytes[position + index] != word.utf8Start[index] { throw failure("not a value") }
        position += count
        return value
    }

    private mutating func number() throws(Failure) -> JSONValue {
        let start = position
        var isInteger = true
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try digits() }
        if take(UInt8(ascii: ".")) {
            isInteger = false
            try digits()
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isInteger = false
            _ = take(UInt8(ascii: "+")) || take(UInt8(ascii: "-"))
            try digits()
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, let value = Int64(text) { return .int(value) }
        guard let value = Double(text), value.isFinite else { throw failure("a number beyond what is representable") }
        return .double(value)
    }

    private mutating func digits() throws(Failure) {
        let start = position
        while let byte = next, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { position += 1 }
        guard position > start else { throw failure("a digit should be here") }
    }
}

extension JSONReader {
    private mutating func string() throws(Failure) -> String {
        position += 1
        let start = position
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: bytes[start..<position], as: UTF8.self) else {
                    throw failure("not UTF-8")
                }
                position += 1
                return text
            case UInt8(ascii: "\\"): return try escapedString(from: start)
            case 0..<0x20: throw failure("a control character in a string")
            default: position += 1
            }
        }
        throw failure("a string without an end")
    }

    /// The slow path: `position` is at the first backslash of a string that started at `start`.
    private mutating func escapedString(from start: Int) throws(Failure) -> String {
        var unescaped = Array(bytes[start..<position])
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: unescaped, as: UTF8.self) else { throw failure("not UTF-8") }
                return text
            case UInt8(ascii: "\\"): try escape(into: &unescaped)
            case 0..<0x20: throw failure("a control character in a string")
            default: unescaped.append(byte)
            }
        }
        throw failure("a string without an end")
    }

    private mutating func escape(into text: inout [UInt8]) throws(Failure) {
        guard let byte = next else { throw failure("a string without an end") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0c)
        case UInt8(ascii: "n"): text.append(0x0a)
        case UInt8(ascii: "r"): text.append(0x0d)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"): text.append(contentsOf: try unicodeEscape())
        default: throw failure("an unknown escape")
        }
    }

    private mutating func unicodeEscape() throws(Failure) -> String.UTF8View {
        let high = try hexadecimal()
        if let scalar = Unicode.Scalar(UInt32(high)) { return String(scalar).utf8 }
        guard (0xd800..<0xdc00).contains(high), take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else {
            throw failure("half of a surrogate pair")
        }
        let low = try hexadecimal()
        guard (0xdc00..<0xe000).contains(low) else { throw failure("half of a surrogate pair") }
        let value = 0x10000 + (UInt32(high) - 0xd800) << 10 + (UInt32(low) - 0xdc00)
        guard let scalar = Unicode.Scalar(value) else { throw failure("not a character") }
        return String(scalar).utf8
    }

    private mutating func hexadecimal() throws(Failure) -> UInt16 {
        guard position + 4 <= bytes.count else { throw failure("four hexadecimal digits should be here") }
        var value: UInt16 = 0
        for byte in bytes[position..<position + 4] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw failure("four hexadecimal digits should be here")
            }
            value = value << 4 | UInt16(digit)
        }
        position += 4
        return value
    }
}
