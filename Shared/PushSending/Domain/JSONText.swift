package import FoundationEssentials
package import PushProtocol

/// Compact JSON with sorted keys and plain slashes, written straight to bytes: what providers get, and what their size
/// limits count.
package enum JSONText {
    package static func bytes(of value: JSONValue) -> [UInt8] {
        var output = JSONOutput()
        output.value(value)
        return output.bytes
    }
}

/// JSON text with gaps: written once for a push, filled for each target.
package struct JSONTemplate: Hashable, Sendable {
    private let text: [UInt8]
    /// Where in `text` the fillings go.
    private let gaps: [Int]
    /// Where in `text` the strings begin that depend on the time, from the first to the last.
    private let times: [Int]

    /// Every string in `value` that is exactly `gap` becomes a gap. Every string that is a name in `timed` is written as
    /// the text of that name, and its place is noted.
    package init(_ value: JSONValue, gap: String, timed: [String: String] = [:]) {
        var output = JSONOutput()
        var gaps: [Int] = []
        var times: [Int] = []
        output.value(value) { output, text in
            if text == gap {
                gaps.append(output.bytes.count + 1)
                output.raw("\"\"")
            } else if let known = timed[text] {
                times.append(output.bytes.count + 1)
                output.string(known)
            } else {
                output.string(text)
            }
        }
        text = output.bytes
        self.gaps = gaps
        self.times = times
    }

    /// `text`, which is JSON but for what goes into its `gaps`: where in it each of them is, from the first to the last.
    /// `times` are the places of strings that depend on the time, in the same order.
    package init(_ text: [UInt8], gaps: [Int], times: [Int] = []) {
        self.text = text
        self.gaps = gaps
        self.times = times
    }

    /// Where the strings that depend on the time begin once so many bytes fill each gap.
    package func times(filledWith count: Int) -> [Int] {
        times.map { time in time + count * gaps.count { $0 <= time } }
    }

    /// The bytes of the text, filled with so many in each gap.
    package func count(filledWith count: Int) -> Int { text.count + gaps.count * count }

    /// Writes the text from its byte `first`, which no gap comes before, and in every gap `id`, in lower case.
    package func write(from first: Int, filledWith id: UUID, to json: inout ByteCursor) {
        text.withUnsafeBufferPointer { text in
            var start = first
            for gap in gaps {
                json.put(UnsafeBufferPointer(rebasing: text[start..<gap]))
                json.put(id, .lower)
                start = gap
            }
            json.put(UnsafeBufferPointer(rebasing: text[start...]))
        }
    }
}
