import FoundationEssentials
import PushProtocol
import PushSending
import TestSupport
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
        #expect(decoded.array?.first?.number == number)
    }

    private func filled(_ template: JSONTemplate, _ id: UUID, from first: Int = 0) -> String {
        let count = template.count(filledWith: 36)
        let bytes = ByteCursor.bytes(atMost: count) { template.write(from: first, filledWith: id, to: &$0) }
        #expect(bytes.count == count - first)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `a template is filled in each of its gaps and nowhere else`() {
        let template = JSONTemplate(["a": "GAP", "b": ["GAP", "GAPS"], "GAP": 1], gap: "GAP")
        let id = DerivedID.namespace, text = id.uuidString.lowercased()
        #expect(filled(template, id) == #"{"GAP":1,"a":"\#(text)","b":["\#(text)","GAPS"]}"#)
        #expect(filled(template, id, from: 1) == #""GAP":1,"a":"\#(text)","b":["\#(text)","GAPS"]}"#)
        #expect(JSONTemplate(Array(#"{"a":""}"#.utf8), gaps: [6]) == JSONTemplate(["a": "GAP"], gap: "GAP"))
    }

    @Test func `a template without gaps is the text`() {
        #expect(filled(JSONTemplate(["a": 1], gap: "GAP"), DerivedID.namespace) == #"{"a":1}"#)
    }

    @Test func `the places of what depends on the time are known, with the gaps filled`() {
        let template = JSONTemplate(
            ["a": "GAP", "b": "TTL", "c": "GAP", "d": "TTL"], gap: "GAP", timed: ["TTL": "90s"])
        let text = filled(template, DerivedID.namespace)
        let places = template.times(filledWith: 36)
        #expect(places.count == 2)
        for index in 0..<places.count { #expect(text.dropFirst(places[index]).hasPrefix(#"90s""#)) }
        #expect(JSONTemplate(["a": 1], gap: "GAP", timed: ["TTL": "90s"]).times(filledWith: 36).isEmpty)
    }

    @Test(arguments: [(0, "100"), (1, "99"), (91, "9"), (100, "0"), (500, "0"), (-1000, "999")])
    func `a body says how long its push still has at the moment of sending`(passed: Int, left: String) {
        let template = JSONTemplate(["a": "GAP", "b": "TTL", "c": "TTL"], gap: "GAP", timed: ["TTL": "100"])
        let countdown = Countdown(
            until: .sample + .seconds(100), most: 999, places: template.times(filledWith: 36), now: .sample)
        var batch = RequestBatch(path: "/")
        batch.begin(RequestBatch.Letter(shared: []))
        let text = "--" + filled(template, DerivedID.namespace)
        batch.endRequest(body: Array(text.utf8), countdown: countdown, shift: 2)
        let body = batch.body(of: 0) { .sample + .seconds(passed) }
        #expect(String(decoding: body, as: UTF8.self) == text.replacing(#""100""#, with: "\"\(left)\""))
    }
}
