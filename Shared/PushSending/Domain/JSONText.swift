package import PushProtocol

/// Compact JSON with sorted keys and plain slashes, written straight to bytes: what providers get, and what their size
/// limits count.
package enum JSONText {
    package static func bytes(of value: JSONValue) -> [UInt8] {
        var writer = JSONWriter(gap: nil)
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
        var writer = JSONWriter(gap: gap)
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

private struct JSONWriter {
    let gap: String?
    private var pieces: [[UInt8]] = []
    private var bytes: [UInt8] = []

    init(gap: String?) { self.gap = gap }

    consuming func finish() -> [[UInt8]] { pieces + [bytes] }

    mutating func write(_ value: JSONValue) {
        switch value {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .int(let value): bytes += String(value).utf8
        case .double(let value): write(value)
        case .string(let value) where value == gap: writeGap()
        case .string(let value): write(value)
        case .array(let values): write(values)
        case .object(let members): write(members)
        }
    }

    /// JSON has no word for infinities and NaN; no JSON text can have brought one in.
    private mutating func write(_ value: Double) {
        if let whole = Int64(exactly: value) {
            bytes += String(whole).utf8
        } else {
            bytes += (value.isFinite ? value.description : "null").utf8
        }
    }

    mutating func write(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0x0a: bytes += #"\n"#.utf8
            case 0x0d: bytes += #"\r"#.utf8
            case 0x09: bytes += #"\t"#.utf8
            case 0..<0x20:
                bytes += #"\u00"#.utf8
                bytes += [hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 15)]]
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func writeGap() {
        bytes.append(UInt8(ascii: "\""))
        pieces.append(bytes)
        bytes = [UInt8(ascii: "\"")]
    }

    private mutating func write(_ values: [JSONValue]) {
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            write(value)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    private mutating func write(_ members: [String: JSONValue]) {
        bytes.append(UInt8(ascii: "{"))
        for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            write(member.key)
            bytes.append(UInt8(ascii: ":"))
            write(member.value)
        }
        bytes.append(UInt8(ascii: "}"))
    }
}

private let hexDigits = Array("0123456789abcdef".utf8)
