package import PushProtocol

/// Compact JSON with sorted keys and plain slashes, written straight to bytes: what providers get, and what their size
/// limits count.
package enum JSONText {
    package static func bytes(of value: JSONValue) -> [UInt8] {
        var writer = JSONPieces(gap: nil)
        writer.write(value)
        return writer.finish()[0]
    }
}

/// JSON text with gaps: written once for a push, filled for each target.
package struct JSONTemplate: Hashable, Sendable {
    /// The pieces between the gaps: one more than there are gaps.
    private let pieces: [[UInt8]]

    /// Every string in `value` that is exactly `gap` becomes a gap.
    package init(_ value: JSONValue, gap: String) {
        var writer = JSONPieces(gap: gap)
        writer.write(value)
        pieces = writer.finish()
    }

    /// The text with `filling`, which must need no escaping, in every gap.
    package func filled(with filling: String) -> [UInt8] {
        guard pieces.count > 1 else { return pieces[0] }
        let text = Array(filling.utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(pieces.reduce(0) { $0 + $1.count } + (pieces.count - 1) * text.count)
        for (index, piece) in pieces.enumerated() {
            if index > 0 { bytes += text }
            bytes += piece
        }
        return bytes
    }
}

/// Writes a value, in pieces that end and begin at the gaps.
private struct JSONPieces {
    let gap: String?
    private var pieces: [[UInt8]] = []
    private var output = JSONOutput()

    init(gap: String?) { self.gap = gap }

    consuming func finish() -> [[UInt8]] { pieces + [output.bytes] }

    mutating func write(_ value: JSONValue) {
        switch value {
        case .null: output.raw("null")
        case .bool(let value): output.raw(value ? "true" : "false")
        case .int(let value): output.integer(value)
        case .double(let value): output.double(value)
        case .string(let value) where value == gap: writeGap()
        case .string(let value): output.string(value)
        case .array(let values): write(values)
        case .object(let members): write(members)
        }
    }

    private mutating func writeGap() {
        output.raw("\"")
        pieces.append(output.bytes)
        output = JSONOutput()
        output.raw("\"")
    }

    private mutating func write(_ values: [JSONValue]) {
        output.raw("[")
        for (index, value) in values.enumerated() {
            if index > 0 { output.raw(",") }
            write(value)
        }
        output.raw("]")
    }

    private mutating func write(_ members: [String: JSONValue]) {
        output.raw("{")
        for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { output.raw(",") }
            output.string(member.key)
            output.raw(":")
            write(member.value)
        }
        output.raw("}")
    }
}
