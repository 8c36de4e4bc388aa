internal import CNGHTTP2

/// Stable memory for header names and values from submission until nghttp2 has encoded them.
///
/// nghttp2 does not copy the fields (`NGHTTP2_NV_FLAG_NO_COPY_*`), so their bytes must not move before the HEADERS
/// frame was sent. Addresses of the arena stay valid until `reset`, which the session calls only when every submitted
/// HEADERS frame was sent. Owned by one session, used on its event loop.
package struct HeaderArena: ~Copyable {
    private static let blockSize = 8 * 1024

    private var blocks: [UnsafeMutableRawBufferPointer] = []
    private var used = 0
    /// The fields of the message being built.
    private(set) var fields: [nghttp2_nv] = []
    /// Whether a value of the message being built is malformed (RFC 9113 §8.2.1).
    private(set) var isInvalid = false

    deinit {
        for block in blocks { block.deallocate() }
    }

    /// Allocated bytes; tests check that they do not grow with the number of requests.
    var capacity: Int { blocks.reduce(0) { $0 + $1.count } }

    /// Starts a new message; the fields of earlier messages keep their addresses.
    mutating func begin() {
        fields.removeAll(keepingCapacity: true)
        isInvalid = false
    }

    package mutating func append(_ header: HTTP2Header) {
        append(header.name, header.value, neverIndexed: header.neverIndexed)
    }

    /// Adds one field. The name must be a lower-case constant: it is not validated.
    package mutating func append(_ name: String, _ value: String, neverIndexed: Bool = false) {
        var value = value
        value.withUTF8 { append(name, UnsafeRawBufferPointer($0), neverIndexed: neverIndexed) }
    }

    /// Adds one field. The name must be a lower-case constant: it is not validated.
    package mutating func append(_ name: String, _ value: UnsafeRawBufferPointer, neverIndexed: Bool = false) {
        var name = name
        isInvalid = isInvalid || !HeaderValidation.isValue(value)
        let storedName = name.withUTF8 { store(UnsafeRawBufferPointer($0)) }
        add(storedName, name.utf8.count, store(value), value.count, neverIndexed)
    }

    /// Adds one field with a lower-case name. The name is not copied, since constants outlive every frame.
    package mutating func append(
        constant name: StaticString, _ value: UnsafeRawBufferPointer, neverIndexed: Bool = false
    ) {
        isInvalid = isInvalid || !HeaderValidation.isValue(value)
        add(
            UnsafeMutablePointer(mutating: name.utf8Start), name.utf8CodeUnitCount, store(value), value.count,
            neverIndexed)
    }

    /// Adds one field with a constant name and value; copies neither.
    package mutating func append(constant name: StaticString, constant value: StaticString) {
        add(
            UnsafeMutablePointer(mutating: name.utf8Start), name.utf8CodeUnitCount,
            UnsafeMutablePointer(mutating: value.utf8Start), value.utf8CodeUnitCount, false)
    }

    /// Adds all fields of `block` with one copy.
    package mutating func append(_ block: HTTP2FieldBlock) {
        var name = block.bytes.withUnsafeBytes { store($0) }
        for span in block.spans {
            let value = name + span.name
            add(name, span.name, value, span.value, span.neverIndexed)
            name = value + span.value
        }
    }

    /// Frees all blocks but the first and invalidates all addresses.
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
        let address = blocks[blocks.count - 1].baseAddress! + used
        if let source = bytes.baseAddress { address.copyMemory(from: source, byteCount: bytes.count) }
        used += bytes.count
        return address.assumingMemoryBound(to: UInt8.self)
    }
}
