/// Writes the wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/). Leaves out default
/// values, as proto3 does.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    private enum WireType: UInt64 {
        case varint = 0
        case fixed64 = 1
        case lengthDelimited = 2
        case fixed32 = 5
    }

    mutating func varint(_ field: UInt64, _ value: UInt64) {
        guard value != 0 else { return }
        tag(field, .varint)
        append(varint: value)
    }

    mutating func fixed64(_ field: UInt64, _ value: UInt64) {
        guard value != 0 else { return }
        tag(field, .fixed64)
        append(littleEndian: value)
    }

    mutating func fixed32(_ field: UInt64, _ value: UInt32) {
        guard value != 0 else { return }
        tag(field, .fixed32)
        append(littleEndian: value)
    }

    mutating func string(_ field: UInt64, _ value: String) {
        guard !value.isEmpty else { return }
        lengthDelimited(field, value.utf8)
    }

    /// 8 or 16 bytes in network order.
    mutating func bytes(_ field: UInt64, bigEndian words: UInt64...) {
        tag(field, .lengthDelimited)
        append(varint: UInt64(8 * words.count))
        for word in words { append(littleEndian: word.byteSwapped) }
    }

    /// A nested message, also if it is empty.
    mutating func message(_ field: UInt64, _ write: (inout ProtobufWriter) -> Void) {
        var nested = ProtobufWriter()
        write(&nested)
        lengthDelimited(field, nested.bytes)
    }

    /// A member of a `oneof`, which is written also with a default value.
    mutating func alternative(_ field: UInt64, varint value: UInt64) {
        tag(field, .varint)
        append(varint: value)
    }

    mutating func alternative(_ field: UInt64, double value: Double) {
        tag(field, .fixed64)
        append(littleEndian: value.bitPattern)
    }

    mutating func alternative(_ field: UInt64, string value: String) { lengthDelimited(field, value.utf8) }

    private mutating func lengthDelimited(_ field: UInt64, _ content: some Collection<UInt8>) {
        tag(field, .lengthDelimited)
        append(varint: UInt64(content.count))
        bytes.append(contentsOf: content)
    }

    private mutating func tag(_ field: UInt64, _ type: WireType) { append(varint: field << 3 | type.rawValue) }

    private mutating func append(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    private mutating func append(littleEndian value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
}
