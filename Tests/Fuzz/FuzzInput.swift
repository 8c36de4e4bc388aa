/// An input of several parts.
struct FuzzInput {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    /// The next byte; 0 at the end.
    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// The bytes up to the next line feed, which is removed; all of them if there is none.
    mutating func line() -> [UInt8] {
        let line = Array(rest.prefix { $0 != UInt8(ascii: "\n") })
        rest = rest.dropFirst(line.count + 1)
        return line
    }

    mutating func textLine() -> String { String(decoding: line(), as: UTF8.self) }

    /// `name: value` lines up to an empty line.
    mutating func fields() -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        while !rest.isEmpty {
            let line = textLine()
            guard !line.isEmpty else { break }
            let separator = line.firstRange(of: ": ")
            let name = line[..<(separator?.lowerBound ?? line.endIndex)]
            fields.append((String(name), separator.map { String(line[$0.upperBound...]) } ?? ""))
        }
        return fields
    }
}
