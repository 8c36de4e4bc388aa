import PushProtocol
import PushSending
import Testing

@Suite struct JSONTextTests {
    private func text(_ value: JSONValue) -> String { String(decoding: JSONText.bytes(of: value), as: UTF8.self) }

    @Test func `keys are sorted, slashes stay plain, nothing is padded`() {
        #expect(text(["b": [1, true, nil], "a": "x/y"]) == #"{"a":"x/y","b":[1,true,null]}"#)
    }

    @Test(arguments: [
        "plain", "quote \" and \\ backslash", "line\nfeed\r\ttab", "\u{0}\u{1f}\u{7f}", "👩‍👩‍👧 – ünï", "\u{2028}", "",
    ])
    func `every string comes back as it went in`(string: String) throws {
        let value: JSONValue = [string: .string(string)]
        #expect(try WireCoding.decode(JSONValue.self, from: JSONText.bytes(of: value)) == value)
    }

    @Test(arguments: [0, 1, -1, 0.5, 0.8, 1e300, -2.5e-10, 3.0] as [Double])
    func `every number comes back as it went in`(number: Double) throws {
        let decoded = try WireCoding.decode(JSONValue.self, from: JSONText.bytes(of: [.double(number)]))
        let back: Double? =
            switch decoded.array?.first {
            case .int(let value): Double(value)
            case .double(let value): value
            default: nil
            }
        #expect(back == number)
    }

    @Test func `a template is filled in each of its gaps and nowhere else`() {
        let template = JSONTemplate(["a": "GAP", "b": ["GAP", "GAPS"], "GAP": 1], gap: "GAP")
        #expect(
            String(decoding: template.filled(with: "id"), as: UTF8.self) == #"{"GAP":1,"a":"id","b":["id","GAPS"]}"#)
    }

    @Test func `a template without gaps is the text`() {
        #expect(JSONTemplate(["a": 1], gap: "GAP").filled(with: "id") == Array(#"{"a":1}"#.utf8))
    }
}
