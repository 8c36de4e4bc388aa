import PushProtocol

/// Reads JSON as both providers do: strict RFC 8259, the last of duplicate members wins, and at most ``maximumDepth``
/// levels.
///
/// Only these rules are the simulator's own. `WireCoding` refuses deep nesting, and keeps the first of duplicate
/// members.
enum ProviderJSON {
    /// The maximum nesting of arrays and objects.
    static let maximumDepth = 64

    /// The position of a syntax error.
    struct Failure: Error, Equatable {
        let offset: Int
    }

    /// Parses the single value in `body`.
    static func value(of body: some Sequence<UInt8>) throws(Failure) -> JSONValue {
        let result: Result<JSONValue, Failure> =
            body.withContiguousStorageIfAvailable(read) ?? Array(body).withUnsafeBufferPointer(read)
        return try result.get()
    }

    private static func read(_ bytes: UnsafeBufferPointer<UInt8>) -> Result<JSONValue, Failure> {
        var reader = JSONReader(bytes, maximumDepth: maximumDepth)
        do throws(JSONReader.Unreadable) {
            let value = try value(&reader)
            try reader.end()
            return .success(value)
        } catch {
            return .failure(Failure(offset: reader.position))
        }
    }

    private static func value(_ reader: inout JSONReader) throws(JSONReader.Unreadable) -> JSONValue {
        switch try reader.peek() {
        case UInt8(ascii: "{"):
            var members: [String: JSONValue] = [:]
            try reader.members { (reader, name) throws(JSONReader.Unreadable) in
                members[name] = try value(&reader)
            }
            return .object(members)
        case UInt8(ascii: "["):
            var elements: [JSONValue] = []
            try reader.array { (reader) throws(JSONReader.Unreadable) in elements.append(try value(&reader)) }
            return .array(elements)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number(&reader)
        default: return try reader.value()
        }
    }

    /// A number with a fraction or an exponent stays a double, even if it is whole.
    private static func number(_ reader: inout JSONReader) throws(JSONReader.Unreadable) -> JSONValue {
        if let whole = try? reader.integer() { return .int(whole) }
        let text = String(decoding: reader.bytes { "+-.eE0123456789".utf8.contains($0) }, as: UTF8.self)
        guard text.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/) != nil,
            let double = Double(text), double.isFinite
        else { throw JSONReader.Unreadable() }
        return Int64(text).map(JSONValue.int) ?? .double(double)
    }
}
