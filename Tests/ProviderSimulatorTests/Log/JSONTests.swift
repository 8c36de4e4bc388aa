import PushProtocol
import Testing

@testable import ProviderSimulator

@Suite struct JSONTests {
    static func read(_ text: String) -> JSONValue? { try? ProviderJSON.value(of: Array(text.utf8)) }

    @Test(
        arguments: [
            ("null", .null), (" true ", true), ("-0", .int(0)), ("42", 42), ("1.5", 1.5), ("1e3", .double(1000)),
            ("9223372036854775807", .int(.max)), ("9223372036854775808", .double(9_223_372_036_854_775_808)),
            (#""a\"\\\/\b\f\n\r\té""#, .string("a\"\\/\u{8}\u{c}\n\r\té")), (#""😀""#, "😀"), ("[]", []),
            ("[1,[2]]", [1, [2]]),
            (#"{"a":{"b":[]},"a":1}"#, ["a": 1]),
        ] as [(String, JSONValue)]) func `JSON is read`(text: String, value: JSONValue)
    {
        #expect(Self.read(text) == value)
    }

    @Test(arguments: [
        "", " ", "nul", "nulll", "01", "1.", ".5", "+1", "1e", "-", "[1,]", "[1 2]", "{\"a\"}", "{\"a\":1,}", "{a:1}",
        "\"", "\"\u{1}\"", #""\x""#, #""\ud83d""#, #""\ud83d\u0041""#, #""\u12""#, "[", "{", "1 2", "1e999", "'a'",
    ]) func `invalid JSON is rejected`(text: String) {
        #expect(Self.read(text) == nil)
    }

    @Test func `bytes that are not UTF-8 are rejected`() {
        #expect(throws: ProviderJSON.Failure.self) { try ProviderJSON.value(of: [0x22, 0xc3, 0x28, 0x22]) }
    }

    @Test func `nesting is bounded`() {
        let depth = ProviderJSON.maximumDepth
        #expect(Self.read(String(repeating: "[", count: depth) + String(repeating: "]", count: depth)) != nil)
        #expect(Self.read(String(repeating: "[", count: depth + 1) + String(repeating: "]", count: depth + 1)) == nil)
        #expect(Self.read(String(repeating: #"{"a":"#, count: 100_000)) == nil)
    }

    @Test func `written JSON reads back`() throws {
        let value: JSONValue = ["a": [1, -2.5, .null, true], "b\u{1}\n\"\\": "é😀", "c": [:], "d": .int(.min)]
        var writer = JSONWriter()
        writer.value(value)
        #expect(try ProviderJSON.value(of: writer.bytes) == value)
    }
}
