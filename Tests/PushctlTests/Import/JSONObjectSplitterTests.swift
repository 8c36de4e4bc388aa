import Testing

@testable import Pushctl

@Suite struct JSONObjectSplitterTests {
    private func records(_ text: String, longest: Int = 1000) -> [String] {
        var splitter = JSONObjectSplitter(longest: longest)
        var found: [[UInt8]] = []
        for byte in text.utf8 {
            if let record = splitter.take(byte) { found.append(record) }
        }
        if let rest = splitter.finish() { found.append(rest) }
        return found.map { String(decoding: $0, as: UTF8.self) }
    }

    private static let objects = [#"{"a":[{"b":1}]}"#, #"{"c":"}]\"{"}"#, "{}"]

    @Test(arguments: [
        objects.joined(separator: "\n"), objects.joined(), "[\(objects.joined(separator: ", "))]",
        "{ \"notifications\" :\n [\(objects.joined(separator: ","))] }",
        "{\"notifications\":[\(objects[0])]}\n{\"notifications\":[\(objects[1]),\(objects[2])]}",
    ])
    func `objects are found in an array, in a list, and one after the other`(_ text: String) {
        #expect(records(text) == Self.objects)
    }

    @Test func `a list behind another member stays in its object`() {
        let request = #"{"sync":true,"notifications":[{"a":1}]}"#
        #expect(records("[\(request)]") == [request])
    }

    @Test func `any text outside an object is a record`() {
        #expect(
            records(#"[1, "x", {"a":2}oops{"b":3}, null]"#) == ["1", #""x""#, #"{"a":2}"#, "oops", #"{"b":3}"#, "null"])
    }

    @Test func `an unfinished object is the last record`() {
        #expect(records(#"[{"a":1},{"b":"#) == [#"{"a":1}"#, #"{"b":"#])
        #expect(records("").isEmpty && records("[ ]\n").isEmpty)
    }

    @Test func `a long object is cut and does not swallow the next one`() {
        let long = "{\"a\":\"\(String(repeating: "x", count: 5000))\"}"
        #expect(records("[\(long),{}]", longest: 100).map(\.utf8.count) == [101, 2])
    }

    @Test func `it continues after any object`() {
        let text = "[\(Self.objects.joined(separator: ","))]"
        for number in 0..<Self.objects.count {
            let start = text.firstRange(of: Self.objects[number])!.upperBound
            #expect(records(String(text[start...])) == Array(Self.objects[(number + 1)...]))
        }
    }
}
