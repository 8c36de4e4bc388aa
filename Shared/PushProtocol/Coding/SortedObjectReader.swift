/// Reads the members of a canonical JSON object in sorted order.
///
/// Each requested member usually starts at the current position, so finding it takes one comparison. Members that are
/// not requested are skipped. Objects with unsorted or duplicate keys throw ``JSONReader/Unreadable``.
struct SortedObjectReader {
    /// The byte before the next member.
    private var separator = UInt8(ascii: "{")
    /// The range of the last name. Later names must sort after it.
    private var lastName: Range<Int>?

    /// Enters the next object.
    init(_ scan: inout JSONReader) throws(JSONReader.Unreadable) { try scan.enterContainer() }

    /// Moves to the value of the member `name`, given with its quotes and colon. Returns `false` if the object does
    /// not have it.
    // Inlined, `name` becomes one or two integer constants. `@inline(__always)` kept a call, at 70 to 100
    // instructions a name.
    @_transparent
    mutating func find(_ name: StaticString, _ scan: inout JSONReader) throws(JSONReader.Unreadable) -> Bool {
        guard scan.isNext(separator) else { return false }
        let start = scan.position + 1
        let count = name.utf8CodeUnitCount
        // Compares the first bytes as big-endian numbers. Their order is the order of the names, because a quote
        // sorts before every letter.
        guard let here = scan.number(at: start, min(count, 8)) else { return try search(name, &scan) }
        let wanted = Self.number(name)
        guard here <= wanted else { return false }
        guard here == wanted, count <= 8 || scan.matches(name, at: start) else { return try search(name, &scan) }
        recordName(start + 1..<start + count - 2)
        scan.position = start + count
        return true
    }

    /// The first bytes of a quoted name, as ``JSONReader/number(at:_:)`` returns them. A quoted name has at
    /// least 4 bytes.
    @inline(__always)
    private static func number(_ name: StaticString) -> UInt64 {
        let count = name.utf8CodeUnitCount
        precondition(count >= 4)
        let name = UnsafeRawBufferPointer(start: name.utf8Start, count: count)
        if count >= 8 { return UInt64(bigEndian: name.loadUnaligned(as: UInt64.self)) }
        // The first four and last four bytes, which may overlap.
        let first = UInt64(UInt32(bigEndian: name.loadUnaligned(as: UInt32.self)))
        let last = UInt64(UInt32(bigEndian: name.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)))
        return first << UInt64(8 * (count - 4)) | last & (1 << UInt64(8 * (count - 4)) - 1)
    }

    /// Moves to the value of a member that every message has.
    @_transparent
    mutating func require(_ name: StaticString, _ scan: inout JSONReader) throws(JSONReader.Unreadable) {
        guard try find(name, &scan) else { throw JSONReader.Unreadable(missing: name) }
    }

    /// Throws if the object has the member `name`.
    mutating func requireAbsent(_ name: StaticString, _ scan: inout JSONReader) throws(JSONReader.Unreadable) {
        guard try !find(name, &scan) else { throw JSONReader.Unreadable() }
    }

    /// Finds `name` when the next member is another one.
    @inline(never)
    private mutating func search(
        _ name: StaticString, _ scan: inout JSONReader
    ) throws(JSONReader.Unreadable) -> Bool {
        let wanted = UnsafeBufferPointer(start: name.utf8Start + 1, count: name.utf8CodeUnitCount - 3)
        while scan.isNext(separator), !scan.matches("{}", at: scan.position) {
            var ahead = scan
            ahead.position += 1
            let found = try ahead.canonicalName()
            guard !wanted.lexicographicallyPrecedes(ahead.bytes[found]) else { return false }
            try checkOrder(found, ahead)
            scan = ahead
            if ahead.bytes[found].elementsEqual(wanted) { return true }
            _ = try scan.value()
        }
        return false
    }

    /// Reads `type` and `version` after the trace, and leaves the object. `type` is given with its quotes.
    @inline(__always)
    mutating func end(
        _ scan: inout JSONReader, ofType type: StaticString, upToVersion version: Int
    ) throws(JSONReader.Unreadable) {
        try require(#""type":"#, &scan)
        try scan.literal(type)
        try require(#""version":"#, &scan)
        guard (1...Int64(version)).contains(try scan.integer()) else { throw JSONReader.Unreadable() }
        try end(&scan)
    }

    /// Leaves the object, skipping its remaining members.
    mutating func end(_ scan: inout JSONReader) throws(JSONReader.Unreadable) {
        if separator == UInt8(ascii: "{"), scan.matches("{}", at: scan.position) {
            scan.position += 1
            separator = UInt8(ascii: ",")
        }
        while scan.isNext(separator) {
            scan.position += 1
            try checkOrder(try scan.canonicalName(), scan)
            _ = try scan.value()
        }
        guard separator == UInt8(ascii: ",") else { throw JSONReader.Unreadable() }
        try scan.expect(UInt8(ascii: "}"))
        scan.leaveContainer()
    }

    private mutating func checkOrder(_ name: Range<Int>, _ scan: JSONReader) throws(JSONReader.Unreadable) {
        if let lastName, !scan.isBefore(lastName, name) { throw JSONReader.Unreadable() }
        recordName(name)
    }

    @inline(__always)
    private mutating func recordName(_ name: Range<Int>) {
        lastName = name
        separator = UInt8(ascii: ",")
    }
}
