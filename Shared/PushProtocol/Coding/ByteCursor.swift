package import FoundationEssentials

/// Writes bytes into memory that was set aside for all of them: for what is written so often that growing an array
/// piece by piece would be most of the work.
package struct ByteCursor: ~Copyable {
    private let start: UnsafeMutableRawPointer
    /// How many bytes were written.
    package private(set) var count = 0
    private let capacity: Int

    private init(_ memory: UnsafeMutableBufferPointer<UInt8>) {
        // Memory for at least one byte has an address.
        start = UnsafeMutableRawPointer(memory.baseAddress!)
        capacity = memory.count
    }

    /// What `write` writes: no more than `limit` bytes. The array has room for no more than that.
    package static func bytes(atMost limit: Int, _ write: (inout ByteCursor) -> Void) -> [UInt8] {
        // An array that is filled by a closure is made by code that asks for its type each time.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: max(limit, 1)) { memory in
            var cursor = ByteCursor(memory)
            write(&cursor)
            return [UInt8](UnsafeBufferPointer(rebasing: memory[..<cursor.count]))
        }
    }

    // Inlined, what is known beforehand is stored in a few moves.
    @inline(__always)
    package mutating func put(_ text: StaticString) {
        copy(text.utf8Start, text.utf8CodeUnitCount)
    }

    package mutating func put(_ bytes: UnsafeBufferPointer<UInt8>) {
        if let address = bytes.baseAddress { copy(address, bytes.count) }
    }

    /// With a label, so that literals are not taken for it.
    package mutating func put(text: String) {
        var text = text
        text.withUTF8 { put($0) }
    }

    /// Writes a number's decimal digits.
    package mutating func put(_ number: Int64) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var rest = number.magnitude
            var place = digits.count
            repeat {
                place -= 1
                digits[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            } while rest > 0
            if number < 0 {
                place -= 1
                digits[place] = UInt8(ascii: "-")
            }
            put(UnsafeBufferPointer(rebasing: digits[place...]))
        }
    }

    /// Writes `id` in its canonical form.
    package mutating func put(_ id: UUID, _ letters: Hexadecimal.Case) {
        let place = take(36)
        Hexadecimal.write(
            id, letters, to: UnsafeMutableBufferPointer(start: place.assumingMemoryBound(to: UInt8.self), count: 36))
    }

    /// Writes a text of which nothing has to be escaped, in its quotes.
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
        precondition(length <= capacity - count, "more is written than was announced")
        defer { count += length }
        return start + count
    }
}
