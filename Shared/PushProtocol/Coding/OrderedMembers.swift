/// An object whose members are asked for in the order of their names. In what our own writers write each of them stands
/// where the one before it ended, so that finding it is one comparison; members that nobody asks for are passed over.
///
/// An object in any other order is left to the general decoder, and so is one with a member that comes twice.
struct OrderedMembers {
    /// What comes before the next member.
    private var separator = UInt8(ascii: "{")
    /// Where the last name was: none that follows may come before it.
    private var last: Range<Int>?

    /// Enters the object that comes next.
    init(_ scan: inout CanonicalScan) throws(JSONReader.Unusual) { try scan.deepen() }

    /// Goes to the value of the member `name`, which is given as it is written, with its quotes and colon. False when the
    /// object has none.
    // Inlined, the name is a number or two that the compiler knows. `@inline(__always)` left a call here, at 70 to 100
    // instructions for each name.
    @_transparent
    mutating func find(_ name: StaticString, _ scan: inout CanonicalScan) throws(JSONReader.Unusual) -> Bool {
        guard scan.isNext(separator) else { return false }
        let start = scan.place + 1
        let count = name.utf8CodeUnitCount
        // Its beginning, and what stands there, as numbers: those of names in order are in order, since a quote comes before
        // every letter.
        guard let here = scan.number(at: start, min(count, 8)) else { return try search(name, &scan) }
        let wanted = Self.number(name)
        guard here <= wanted else { return false }
        guard here == wanted, count <= 8 || scan.holds(name, at: start) else { return try search(name, &scan) }
        passed(start + 1..<start + count - 2)
        scan.jump(to: start + count)
        return true
    }

    /// The first bytes of a name as it is written, which has at least four, as ``CanonicalScan/number(at:_:)`` gives them.
    @inline(__always)
    private static func number(_ name: StaticString) -> UInt64 {
        let count = name.utf8CodeUnitCount
        precondition(count >= 4)
        let name = UnsafeRawBufferPointer(start: name.utf8Start, count: count)
        if count >= 8 { return UInt64(bigEndian: name.loadUnaligned(as: UInt64.self)) }
        // The first four and the last four, which may have some in common.
        let first = UInt64(UInt32(bigEndian: name.loadUnaligned(as: UInt32.self)))
        let last = UInt64(UInt32(bigEndian: name.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)))
        return first << UInt64(8 * (count - 4)) | last & (1 << UInt64(8 * (count - 4)) - 1)
    }

    /// The same for a member that no message of ours is without.
    @_transparent
    mutating func require(_ name: StaticString, _ scan: inout CanonicalScan) throws(JSONReader.Unusual) {
        guard try find(name, &scan) else { throw JSONReader.Unusual() }
    }

    /// The same for a member that is left to the general decoder.
    mutating func refuse(_ name: StaticString, _ scan: inout CanonicalScan) throws(JSONReader.Unusual) {
        guard try !find(name, &scan) else { throw JSONReader.Unusual() }
    }

    /// As ``find(_:_:)``, where another member comes next, or none.
    @inline(never)
    private mutating func search(
        _ name: StaticString, _ scan: inout CanonicalScan
    ) throws(JSONReader.Unusual) -> Bool {
        let wanted = UnsafeBufferPointer(start: name.utf8Start + 1, count: name.utf8CodeUnitCount - 3)
        while scan.isNext(separator), !scan.holds("{}", at: scan.place) {
            var ahead = scan
            ahead.jump(to: scan.place + 1)
            let found = try ahead.name()
            guard !wanted.lexicographicallyPrecedes(ahead.bytes[found]) else { return false }
            try follow(found, ahead)
            scan = ahead
            if ahead.bytes[found].elementsEqual(wanted) { return true }
            _ = try scan.value()
        }
        return false
    }

    /// Reads what a message says of itself after its trace, and leaves it. `type` is given as it is written, with its
    /// quotes.
    @inline(__always)
    mutating func end(
        _ scan: inout CanonicalScan, ofType type: StaticString, upToVersion version: Int
    ) throws(JSONReader.Unusual) {
        try require(#""type":"#, &scan)
        try scan.word(type)
        try require(#""version":"#, &scan)
        guard (1...Int64(version)).contains(try scan.integer()) else { throw JSONReader.Unusual() }
        try end(&scan)
    }

    /// Leaves the object, passing over what is left of it.
    mutating func end(_ scan: inout CanonicalScan) throws(JSONReader.Unusual) {
        if separator == UInt8(ascii: "{"), scan.holds("{}", at: scan.place) {
            scan.jump(to: scan.place + 1)
            separator = UInt8(ascii: ",")
        }
        while scan.isNext(separator) {
            scan.jump(to: scan.place + 1)
            try follow(try scan.name(), scan)
            _ = try scan.value()
        }
        guard separator == UInt8(ascii: ",") else { throw JSONReader.Unusual() }
        try scan.expect(UInt8(ascii: "}"))
        scan.rise()
    }

    private mutating func follow(_ name: Range<Int>, _ scan: CanonicalScan) throws(JSONReader.Unusual) {
        if let last, !scan.isBefore(last, name) { throw JSONReader.Unusual() }
        passed(name)
    }

    @inline(__always)
    private mutating func passed(_ name: Range<Int>) {
        last = name
        separator = UInt8(ascii: ",")
    }
}
