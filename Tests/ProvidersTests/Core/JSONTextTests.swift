import FoundationEssentials
import Providers
import PushProtocol
import Testing
import TestSupport

@Suite struct JSONTextTests {
    private func text(_ value: JSONValue) -> String { String(decoding: JSONText.bytes(of: value), as: UTF8.self) }

    @Test func `keys are sorted, slashes are unescaped, no whitespace is added`() {
        #expect(text(["b": [1, true, nil], "a": "x/y"]) == #"{"a":"x/y","b":[1,true,null]}"#)
    }

    @Test(arguments: [
        "plain", "quote \" and \\ backslash", "line\nfeed\r\ttab", "\u{0}\u{1f}\u{7f}", "👩‍👩‍👧 – ünï", "\u{2028}", "",
    ])
    func `every string round-trips`(string: String) throws {
        let value: JSONValue = [string: .string(string)]
        #expect(try WireCoding.decode(JSONValue.self, from: JSONText.bytes(of: value)) == value)
    }

    @Test(arguments: [0, 1, -1, 0.5, 0.8, 1e300, -2.5e-10, 3.0] as [Double])
    func `every number round-trips`(number: Double) throws {
        let decoded = try WireCoding.decode(JSONValue.self, from: JSONText.bytes(of: [.double(number)]))
        #expect(decoded.array?.first?.number == number)
    }

    private func filled(_ template: JSONTemplate, _ id: UUID, from first: Int = 0) -> String {
        let count = template.count(filledWith: 36)
        let bytes = ByteWriter.bytes(expected: count) { template.write(from: first, filledWith: id, to: &$0) }
        #expect(bytes.count == count - first)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `a template is filled in its placeholders only`() {
        let template = JSONTemplate(["a": "GAP", "b": ["GAP", "GAPS"], "GAP": 1], placeholder: "GAP")
        let id = DerivedID.namespace, text = id.uuidString.lowercased()
        #expect(filled(template, id) == #"{"GAP":1,"a":"\#(text)","b":["\#(text)","GAPS"]}"#)
        #expect(filled(template, id, from: 1) == #""GAP":1,"a":"\#(text)","b":["\#(text)","GAPS"]}"#)
        let empty = JSONTemplate(Array(#"{"a":""}"#.utf8), placeholders: [6])
        #expect(empty == JSONTemplate(["a": "GAP"], placeholder: "GAP"))
    }

    @Test func `a template without placeholders is unchanged`() {
        #expect(filled(JSONTemplate(["a": 1], placeholder: "GAP"), DerivedID.namespace) == #"{"a":1}"#)
    }

    @Test func `the offsets of time-dependent strings account for filled placeholders`() {
        let template = JSONTemplate(
            ["a": "GAP", "b": "TTL", "c": "GAP", "d": "TTL"], placeholder: "GAP", timed: ["TTL": "90s"])
        let text = filled(template, DerivedID.namespace)
        let offsets = template.timeOffsets(filledWith: 36)
        #expect(offsets.count == 2)
        for index in 0..<offsets.count { #expect(text.dropFirst(offsets[index]).hasPrefix(#"90s""#)) }
        #expect(JSONTemplate(["a": 1], placeholder: "GAP", timed: ["TTL": "90s"]).timeOffsets(filledWith: 36).isEmpty)
    }

    @Test(arguments: [(0, "100"), (1, "99"), (91, "9"), (100, "0"), (500, "0"), (-1000, "999")])
    func `the TTL in a body is that at the time of sending`(passed: Int, left: String) {
        let template = JSONTemplate(["a": "GAP", "b": "TTL", "c": "TTL"], placeholder: "GAP", timed: ["TTL": "100"])
        let countdown = TTLCountdown(
            until: .sample + .seconds(100), maximum: 999, offsets: template.timeOffsets(filledWith: 36), now: .sample)
        var batch = ProviderRequestBatch(path: "/")
        batch.begin(ProviderRequestBatch.HeaderTemplate(shared: []))
        let text = "--" + filled(template, DerivedID.namespace)
        batch.endRequest(body: Array(text.utf8), countdown: countdown, shift: 2)
        let body = batch.body(of: 0) { .sample + .seconds(passed) }
        #expect(String(decoding: body, as: UTF8.self) == text.replacing(#""100""#, with: "\"\(left)\""))
    }
}
