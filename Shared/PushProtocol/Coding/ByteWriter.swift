package import FoundationEssentials

/// Writes bytes into a buffer of a fixed capacity. Used for hot messages, where growing an array dominated the cost.
package struct ByteWriter: ~Copyable {
    private let start: UnsafeMutableRawPointer
    /// The number of bytes written so far.
    package private(set) var count = 0
    private let capacity: Int

    private init(_ memory: UnsafeMutableBufferPointer<UInt8>) {
        // A buffer of at least one byte has a base address.
        start = UnsafeMutableRawPointer(memory.baseAddress!)
        capacity = memory.count
    }

    /// Returns the bytes that `write` puts, at most `limit`.
    package static func bytes(atMost limit: Int, _ write: (inout ByteWriter) -> Void) -> [UInt8] {
        // Filling an `Array` through its closure initializer looks up type metadata on each call.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: max(limit, 1)) { memory in
            var cursor = ByteWriter(memory)
            write(&cursor)
            return [UInt8](UnsafeBufferPointer(rebasing: memory[..<cursor.count]))
        }
    }

    // Inlining turns a `StaticString` into a few stores.
    @inline(__always)
    package mutating func put(_ text: StaticString) {
        copy(text.utf8Start, text.utf8CodeUnitCount)
    }

    package mutating func put(_ bytes: UnsafeBufferPointer<UInt8>) {
        if let address = bytes.baseAddress { copy(address, bytes.count) }
    }

    /// The label keeps string literals on the `StaticString` overload.
    package mutating func put(text: String) {
        var text = text
        text.withUTF8 { put($0) }
    }

    /// Writes the decimal digits of `number`.
    package mutating func put(_ number: Int64) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var rest = number.magnitude
            var position = digits.count
            repeat {
                position -= 1
                digits[position] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            if number < 0 {
                position -= 1
                digits[position] = UInt8(ascii: "-")
            }
            put(UnsafeBufferPointer(rebasing: digits[position...]))
        }
    }

    /// Writes the canonical form of `id`.
    package mutating func put(_ id: UUID, _ letters: Hexadecimal.Case) {
        let position = take(36)
        Hexadecimal.write(
            id, letters, to: UnsafeMutableBufferPointer(start: position.assumingMemoryBound(to: UInt8.self), count: 36))
    }

    /// Writes `text` in quotes. `text` must need no escaping.
    package mutating func put(quoted text: String) {
        put("\"")
        put(text: text)
        put("\"")
    }

    mutating func put(quoted id: UUID, _ letters: Hexadecimal.Case) {
        put("\"")
        put(id, letters)
        put("\"")
    }

    @inline(__always)
    private mutating func copy(_ bytes: UnsafePointer<UInt8>, _ length: Int) {
        take(length).copyMemory(from: bytes, byteCount: length)
    }

    @inline(__always)
    private mutating func take(_ length: Int) -> UnsafeMutableRawPointer {
        precondition(length <= capacity - count, "the write exceeds the capacity")
        defer { count += length }
        return start + count
    }
}
