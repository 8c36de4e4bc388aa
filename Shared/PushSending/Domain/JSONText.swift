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

/// At most two places in a text, from the first to the last: held without memory of their own.
package struct TextPlaces: Hashable, Sendable {
    private var first = 0
    private var second = 0
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }
    package var isFull: Bool { count == 2 }

    package mutating func append(_ place: Int) {
        assert(!isFull)
        if count == 0 { first = place } else { second = place }
        count += 1
    }

    package subscript(index: Int) -> Int { index == 0 ? first : second }
}

extension TextPlaces: ExpressibleByArrayLiteral {
    package init(arrayLiteral places: Int...) {
        self.init()
        for place in places { append(place) }
    }
}

/// JSON text with gaps: written once for a push, filled for each target.
package struct JSONTemplate: Hashable, Sendable {
    private let text: [UInt8]
    /// Where in `text` the fillings go.
    private let gaps: TextPlaces
    /// Where in `text` the strings begin that depend on the time.
    private let times: TextPlaces

    /// Every string in `value` that is exactly `gap` becomes a gap. Every string that is a name in `timed` is written as
    /// the text of that name, and its place is noted.
    package init(_ value: JSONValue, gap: String, timed: [String: String] = [:]) {
        var output = JSONOutput()
        var gaps = TextPlaces()
        var times = TextPlaces()
        output.value(value) { output, text in
            if text == gap, !gaps.isFull {
                gaps.append(output.bytes.count + 1)
                output.raw("\"\"")
            } else if let known = timed[text], !times.isFull {
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
    package init(_ text: [UInt8], gaps: TextPlaces, times: TextPlaces = TextPlaces()) {
        self.text = text
        self.gaps = gaps
        self.times = times
    }

    /// Where the strings that depend on the time begin once so many bytes fill each gap.
    package func times(filledWith count: Int) -> TextPlaces {
        var filled = TextPlaces()
        for index in 0..<times.count {
            let time = times[index]
            var place = time
            for gap in 0..<gaps.count where gaps[gap] <= time { place += count }
            filled.append(place)
        }
        return filled
    }

    /// The bytes of the text, filled with so many in each gap.
    package func count(filledWith count: Int) -> Int { text.count + gaps.count * count }

    /// Writes the text from its byte `first`, which no gap comes before, and in every gap `id`, in lower case.
    package func write(from first: Int, filledWith id: UUID, to json: inout ByteCursor) {
        text.withUnsafeBufferPointer { text in
            var start = first
            for index in 0..<gaps.count {
                let gap = gaps[index]
                json.put(UnsafeBufferPointer(rebasing: text[start..<gap]))
                json.put(id, .lower)
                start = gap
            }
            json.put(UnsafeBufferPointer(rebasing: text[start...]))
        }
    }
}
