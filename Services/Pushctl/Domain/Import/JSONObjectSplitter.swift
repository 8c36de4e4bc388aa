/// Finds JSON objects in a stream of bytes, without a parser: in an array, in the array `notifications` of an object,
/// or one after the other.
///
/// It has no state between two objects, so it can begin at the end of any object. A text outside an object is a record
/// too, which no reader accepts.
struct JSONObjectSplitter: Sendable {
    /// In bytes. The rest of a longer record is dropped.
    let longest: Int
    private var record: [UInt8] = []
    private var depth = 0
    private var isInText = false
    private var isEscaped = false
    /// Outside an object, up to the next separator.
    private var isStray = false

    init(longest: Int) { self.longest = longest }

    /// Takes a byte, and returns the record that it completes.
    mutating func take(_ byte: UInt8) -> [UInt8]? {
        if isInText {
            keep(byte)
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isInText = false
            }
            return nil
        }
        guard depth > 0 else { return takeOutside(byte) }
        keep(byte)
        switch byte {
        case UInt8(ascii: "\""): isInText = true
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            depth += 1
            if byte == UInt8(ascii: "["), depth == 2, record.count <= 256, Self.isList(record) {
                (record, depth) = ([], 0)
            }
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            depth -= 1
            if depth == 0 { return finish() }
        default: break
        }
        return nil
    }

    /// The rest at the end of the file, or `nil`.
    mutating func finish() -> [UInt8]? {
        defer { (record, depth, isInText, isEscaped, isStray) = ([], 0, false, false, false) }
        return record.isEmpty ? nil : record
    }

    private mutating func takeOutside(_ byte: UInt8) -> [UInt8]? {
        switch byte {
        case UInt8(ascii: "{"):
            let stray = isStray ? finish() : nil
            (record, depth) = ([byte], 1)
            return stray
        case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: ","),
            UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "}"):
            return isStray ? finish() : nil
        default:
            isStray = true
            keep(byte)
            return nil
        }
    }

    private mutating func keep(_ byte: UInt8) {
        if record.count <= longest { record.append(byte) }
    }

    private static func isList(_ record: [UInt8]) -> Bool {
        record.filter { $0 > UInt8(ascii: " ") }.elementsEqual(#"{"notifications":["#.utf8)
    }
}
