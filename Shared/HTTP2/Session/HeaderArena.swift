internal import CNGHTTP2

/// Stable memory for header names and values from submission until nghttp2 has encoded them.
///
/// nghttp2 is told not to copy fields (`NGHTTP2_NV_FLAG_NO_COPY_*`), so their bytes must not move before the HEADERS
/// frame was sent. The arena hands out addresses that stay valid until `reset`, which its session calls only when no
/// submitted HEADERS frame is unsent. Owned by one session, used on its event loop.
struct HeaderArena: ~Copyable {
    private static let blockSize = 32 * 1024

    private var blocks: [UnsafeMutableRawBufferPointer] = []
    private var used = 0
    /// The fields of the message being built.
    private(set) var fields: [nghttp2_nv] = []

    deinit {
        for block in blocks { block.deallocate() }
    }

    /// Bytes held, for the test that proves the arena does not grow with the number of requests.
    var capacity: Int { blocks.reduce(0) { $0 + $1.count } }

    /// Starts a new message; the fields of earlier ones stay where they are.
    mutating func begin() {
        fields.removeAll(keepingCapacity: true)
    }

    mutating func append(_ header: HTTP2Header) {
        append(header.name, header.value, neverIndexed: header.neverIndexed)
    }

    mutating func append(_ name: String, _ value: String, neverIndexed: Bool = false) {
        var flags = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue
        if neverIndexed { flags |= NGHTTP2_NV_FLAG_NO_INDEX.rawValue }
        let storedName = store(name)
        let storedValue = store(value)
        fields.append(
            nghttp2_nv(
                name: storedName.baseAddress, value: storedValue.baseAddress, namelen: storedName.count,
                valuelen: storedValue.count, flags: UInt8(flags)))
    }

    /// Takes back all memory but the first block. Every address handed out is invalid from here on.
    mutating func reset() {
        guard used > 0 else { return }
        while blocks.count > 1 { blocks.removeLast().deallocate() }
        used = 0
    }

    private mutating func store(_ text: String) -> UnsafeMutableBufferPointer<UInt8> {
        var text = text
        return text.withUTF8 { source in
            let target = reserve(source.count)
            _ = target.initialize(from: source)
            return target
        }
    }

    private mutating func reserve(_ count: Int) -> UnsafeMutableBufferPointer<UInt8> {
        if blocks.isEmpty || used + count > blocks[blocks.count - 1].count {
            blocks.append(.allocate(byteCount: max(count, Self.blockSize), alignment: 1))
            used = 0
        }
        let slice = UnsafeMutableRawBufferPointer(rebasing: blocks[blocks.count - 1][used..<used + count])
        used += count
        return slice.bindMemory(to: UInt8.self)
    }
}
