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

    /// Every string in `value` that is exactly `gap` becomes a gap.
    package init(_ value: JSONValue, gap: String) {
        var output = JSONOutput()
        var gaps: [Int] = []
        output.value(value) { output, text in
            if text == gap {
                gaps.append(output.bytes.count + 1)
                output.raw("\"\"")
            } else {
                output.string(text)
            }
        }
        text = output.bytes
        self.gaps = gaps
    }

    /// The text with `filling`, which must need no escaping, in every gap.
    package func filled(with filling: String) -> [UInt8] {
        guard !gaps.isEmpty else { return text }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count + gaps.count * filling.utf8.count)
        var start = 0
        for gap in gaps {
            bytes += text[start..<gap]
            bytes += filling.utf8
            start = gap
        }
        bytes += text[start...]
        return bytes
    }
}
