/// The answer of a receiver: `ExportTraceServiceResponse` in Protocol Buffers.
enum TraceResponse {
    /// The number of spans that the receiver refused (`partial_success.rejected_spans`); 0 for an unreadable body.
    static func rejectedSpans(in body: [UInt8]) -> Int {
        guard let partial = field(1, in: body[...]), case .nested(let content) = partial,
            case .number(let count)? = field(1, in: content)
        else { return 0 }
        return Int(clamping: Int64(bitPattern: count))
    }

    private enum Value {
        case number(UInt64)
        case nested(ArraySlice<UInt8>)
    }

    /// The first value of a field; `nil` without one, and for malformed bytes.
    private static func field(_ number: UInt64, in message: ArraySlice<UInt8>) -> Value? {
        var rest = message
        while !rest.isEmpty {
            guard let tag = varint(&rest) else { return nil }
            let value: Value?
            switch tag & 7 {
            case 0: value = varint(&rest).map(Value.number)
            case 1: value = take(8, &rest).map(Value.nested)
            case 2: value = varint(&rest).flatMap { take($0, &rest) }.map(Value.nested)
            case 5: value = take(4, &rest).map(Value.nested)
            default: return nil
            }
            guard let value else { return nil }
            if tag >> 3 == number { return value }
        }
        return nil
    }

    private static func varint(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = bytes.popFirst() else { return nil }
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
        }
        return nil
    }

    private static func take(_ count: UInt64, _ bytes: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard count <= UInt64(bytes.count) else { return nil }
        defer { bytes = bytes.dropFirst(Int(count)) }
        return bytes.prefix(Int(count))
    }
}
