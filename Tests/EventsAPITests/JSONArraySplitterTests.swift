import PushProtocol
import Testing
import TestSupport

@testable import EventsAPI

/// The elements of a JSON array as texts.
@Suite struct JSONArraySplitterTests {
    private func split(_ text: String, maximum: Int = 100) throws -> [String] {
        try JSONArraySplitter.elements(of: Array(text.utf8), maximum: maximum).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    @Test func `elements keep their text, without surrounding white space`() throws {
        #expect(try split("[]") == [] && split(" [ \n ] ") == [])
        #expect(try split(#" [ {"a" : [1, 2]} , "x,]\"}" ,3]"#) == [#"{"a" : [1, 2]}"#, #""x,]\"}""#, "3"])
        #expect(try split(#"["\\",{"b":"]"}]"#) == [#""\\""#, #"{"b":"]"}"#])
    }

    @Test func `an invalid element is returned as it is`() throws {
        #expect(try split(#"[{"a":}, nonsense, {"b":1}]"#) == [#"{"a":}"#, "nonsense", #"{"b":1}"#])
    }

    @Test(arguments: [
        "", "{}", "1", "[", "[1", "[1,", "[1,]", "[,1]", #"["a]"#, "[{]", "[}]", "[1]]", "[1] x", #"["\"]"#, "[[1]",
    ])
    func `a text that is not one complete array is refused`(text: String) {
        let error = #expect(throws: EventRefusal.self) { try split(text) }
        #expect(error?.status == 400)
    }

    @Test func `more elements than the maximum are refused as too large`() throws {
        #expect(try split("[1,2,3]", maximum: 3).count == 3)
        let error = #expect(throws: EventRefusal.self) { try split("[1,2,3,4]", maximum: 3) }
        #expect(error?.status == 413)
    }

    @Test func `random arrays have the elements that the JSON reader finds`() throws {
        var random = SplitMix(seed: TestSeed.value)
        func value(_ depth: Int) -> JSONValue {
            switch Int.random(in: 0..<(depth > 3 ? 4 : 6), using: &random) {
            case 0: return .int(.random(in: -9...9, using: &random))
            case 1: return .null
            case 2: return .bool(true)
            case 3:
                let letters = ["\"", "\\", "[", "]", "{", "}", ",", ":", " ", "ä", "\n"]
                return .string((0..<4).map { _ in letters.randomElement(using: &random)! }.joined())
            case 4: return .array((0..<3).map { _ in value(depth + 1) })
            default: return .object(["a": value(depth + 1), "]": value(depth + 1)])
            }
        }
        for _ in 0..<300 {
            let elements = (0..<Int.random(in: 0..<5, using: &random)).map { _ in value(0) }
            let text = try WireCoding.encode(JSONValue.array(elements))
            let found = try JSONArraySplitter.elements(of: text, maximum: 100).map {
                try WireCoding.decode(JSONValue.self, from: Array($0))
            }
            #expect(found == elements)
        }
    }
}
