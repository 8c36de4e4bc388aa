package import FoundationEssentials

/// Writes bytes into a buffer that grows when it is full.
package struct ByteWriter: ~Copyable {
    private var start: UnsafeMutableRawPointer
    /// The number of bytes written so far.
    package private(set) var count = 0
    private var capacity: Int
    /// Whether the writer allocated the buffer.
    private var isOwner: Bool

    package init(capacity: Int = 256) {
        start = .allocate(byteCount: max(capacity, 16), alignment: 8)
        self.capacity = max(capacity, 16)
        isOwner = true
    }

    private init(borrowing memory: UnsafeMutableBufferPointer<UInt8>) {
        // A buffer of at least one byte has a base address.
        start = UnsafeMutableRawPointer(memory.baseAddress!)
        capacity = memory.count
        isOwner = false
    }

    deinit {
        if isOwner { start.deallocate() }
    }

    /// Returns the bytes that `write` puts. A buffer of `expected` bytes does not grow.
    package static func bytes(expected: Int, _ write: (inout ByteWriter) -> Void) -> [UInt8] {
        // Filling an `Array` through its closure initializer looks up type metadata on each call.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: max(expected, 16)) { memory in
            var writer = ByteWriter(borrowing: memory)
            write(&writer)
            return writer.bytes
        }
    }

    /// A copy of the bytes written so far.
    package var bytes: [UInt8] { [UInt8](UnsafeRawBufferPointer(start: start, count: count)) }

    // Inlining turns a `StaticString` into a few stores.
    @inline(__always)
    package mutating func put(_ text: StaticString) {
        copy(text.utf8Start, text.utf8CodeUnitCount)
    }

    package mutating func put(_ bytes: UnsafeBufferPointer<UInt8>) {
        if let address = bytes.baseAddress { copy(address, bytes.count) }
    }

    package mutating func put(_ bytes: [UInt8]) {
        bytes.withUnsafeBufferPointer { put($0) }
    }

    /// The label keeps string literals on the `StaticString` overload.
    package mutating func put(text: String) {
        var text = text
        text.withUTF8 { put($0) }
    }

    /// Writes the decimal digits of `number`.
    package mutating func put(_ number: Int64) {
        number.withDecimalDigits { put($0) }
    }

    /// Writes the canonical form of `id`.
    package mutating func put(_ id: UUID, _ letters: Hexadecimal.Case) {
        let position = take(36)
        Hexadecimal.write(
            id, letters, to: UnsafeMutableBufferPointer(start: position.assumingMemoryBound(to: UInt8.self), count: 36))
    }

    /// Writes the canonical form of `id` in quotes.
    package mutating func quoted(_ id: UUID, _ letters: Hexadecimal.Case) {
        let position = take(38)
        position.storeBytes(of: UInt8(ascii: "\""), as: UInt8.self)
        let digits = (position + 1).assumingMemoryBound(to: UInt8.self)
        Hexadecimal.write(id, letters, to: UnsafeMutableBufferPointer(start: digits, count: 36))
        position.storeBytes(of: UInt8(ascii: "\""), toByteOffset: 37, as: UInt8.self)
    }

    @inline(__always)
    private mutating func copy(_ bytes: UnsafePointer<UInt8>, _ length: Int) {
        take(length).copyMemory(from: bytes, byteCount: length)
    }

    @inline(__always)
    private mutating func take(_ length: Int) -> UnsafeMutableRawPointer {
        if length > capacity - count { grow(for: length) }
        defer { count += length }
        return start + count
    }

    @inline(never)
    private mutating func grow(for length: Int) {
        let size = 2 * (capacity + length)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 8)
        larger.copyMemory(from: start, byteCount: count)
        if isOwner { start.deallocate() }
        (start, capacity, isOwner) = (larger, size, true)
    }
}

extension Int64 {
    /// Calls `use` with the decimal digits.
    @inline(__always)
    package func withDecimalDigits(_ use: (UnsafeBufferPointer<UInt8>) -> Void) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var rest = magnitude
            var position = digits.count
            repeat {
                position -= 1
                digits[position] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            if self < 0 {
                position -= 1
                digits[position] = UInt8(ascii: "-")
            }
            use(UnsafeBufferPointer(rebasing: digits[position...]))
        }
    }
}
