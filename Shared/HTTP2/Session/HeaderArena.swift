internal import CNGHTTP2

/// Stable memory for header names and values from submission until nghttp2 has encoded them.
///
/// nghttp2 is told not to copy fields (`NGHTTP2_NV_FLAG_NO_COPY_*`), so their bytes must not move before the HEADERS
/// frame was sent. The arena hands out addresses that stay valid until `reset`, which its session calls only when no
/// submitted HEADERS frame is unsent. Owned by one session, used on its event loop.
package struct HeaderArena: ~Copyable {
    private static let blockSize = 8 * 1024

    private var blocks: [UnsafeMutableRawBufferPointer] = []
    private var used = 0
    /// The fields of the message being built.
    private(set) var fields: [nghttp2_nv] = []
    /// Whether a value of the message being built holds what no peer would take.
    private(set) var isInvalid = false

    deinit {
        for block in blocks { block.deallocate() }
    }

    /// Bytes held, for the test that proves the arena does not grow with the number of requests.
    var capacity: Int { blocks.reduce(0) { $0 + $1.count } }

    /// Starts a new message; the fields of earlier ones stay where they are.
    mutating func begin() {
        fields.removeAll(keepingCapacity: true)
        isInvalid = false
    }

    mutating func append(_ header: HTTP2Header) {
        append(header.name, header.value, neverIndexed: header.neverIndexed)
    }

    /// Adds one field, whose name must be a constant of ours in lower case.
    package mutating func append(_ name: String, _ value: String, neverIndexed: Bool = false) {
        var value = value
        value.withUTF8 { append(name, UnsafeRawBufferPointer($0), neverIndexed: neverIndexed) }
    }

    /// Adds one field, whose name must be a constant of ours in lower case.
    package mutating func append(_ name: String, _ value: UnsafeRawBufferPointer, neverIndexed: Bool = false) {
        var name = name
        isInvalid = isInvalid || !FieldCheck.isValue(value)
        let storedName = name.withUTF8 { store(UnsafeRawBufferPointer($0)) }
        add(storedName, name.utf8.count, store(value), value.count, neverIndexed)
    }

    /// Adds one field, whose name must be in lower case. Constants need no copy: they outlive every frame.
    package mutating func append(
        constant name: StaticString, _ value: UnsafeRawBufferPointer, neverIndexed: Bool = false
    ) {
        isInvalid = isInvalid || !FieldCheck.isValue(value)
        add(
            UnsafeMutablePointer(mutating: name.utf8Start), name.utf8CodeUnitCount, store(value), value.count,
            neverIndexed)
    }

    /// As above, where the value is a constant too.
    package mutating func append(constant name: StaticString, constant value: StaticString) {
        add(
            UnsafeMutablePointer(mutating: name.utf8Start), name.utf8CodeUnitCount,
            UnsafeMutablePointer(mutating: value.utf8Start), value.utf8CodeUnitCount, false)
    }

    /// Adds all fields of `block` with one copy.
    package mutating func append(_ block: HTTP2FieldBlock) {
        var place = block.bytes.withUnsafeBytes { store($0) }
        for span in block.spans {
            let value = place + span.name
            add(place, span.name, value, span.value, span.neverIndexed)
            place = value + span.value
        }
    }

    /// Takes back all memory but the first block. Every address handed out is invalid from here on.
    mutating func reset() {
        guard used > 0 else { return }
        while blocks.count > 1 { blocks.removeLast().deallocate() }
        used = 0
    }

    private mutating func add(
        _ name: UnsafeMutablePointer<UInt8>, _ nameCount: Int, _ value: UnsafeMutablePointer<UInt8>,
        _ valueCount: Int, _ neverIndexed: Bool
    ) {
        var flags = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue
        if neverIndexed { flags |= NGHTTP2_NV_FLAG_NO_INDEX.rawValue }
        fields.append(
            nghttp2_nv(name: name, value: value, namelen: nameCount, valuelen: valueCount, flags: UInt8(flags)))
    }

    private mutating func store(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutablePointer<UInt8> {
        if blocks.isEmpty || used + bytes.count > blocks[blocks.count - 1].count {
            blocks.append(.allocate(byteCount: max(bytes.count, Self.blockSize), alignment: 1))
            used = 0
        }
        // A block is never empty, so it has an address.
        let place = blocks[blocks.count - 1].baseAddress! + used
        if let source = bytes.baseAddress { place.copyMemory(from: source, byteCount: bytes.count) }
        used += bytes.count
        return place.assumingMemoryBound(to: UInt8.self)
    }
}
