import FoundationEssentials

extension TokenCipher {
    /// A mistake in a file of keys: where it is, and what to do. Holds nothing of a key.
    package struct FileFault: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// The largest file that is read.
    package static let largestFile = 65_536

    /// Reads a file of keys: one a line, as `ID:BASE64` of 32 bytes. The first line says what new tokens are written with: a
    /// key, or the word `plain`. Empty lines, and lines that begin with `#`, mean nothing.
    package init(file bytes: [UInt8]) throws(FileFault) {
        guard bytes.count <= Self.largestFile else {
            throw FileFault(description: "has more than \(Self.largestFile) bytes; give one key a line")
        }
        var keys: [String: [UInt8]] = [:]
        var writing: String?
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            guard let text = String(validating: line, as: UTF8.self) else {
                throw FileFault(description: "line \(index + 1): is not text; \(Self.advice)")
            }
            let line = Self.trimmed(text)
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            if line == Self.plain {
                guard writing == nil else {
                    throw FileFault(
                        description:
                            "line \(index + 1): “plain” counts in the first line only; move it there or delete it")
                }
                writing = Self.plain
                continue
            }
            let (id, key) = try Self.key(in: line, number: index + 1)
            guard keys.updateValue(key, forKey: id) == nil else {
                throw FileFault(
                    description:
                        "line \(index + 1): a line before has the id “\(id)” too; give each key an id of its own")
            }
            if writing == nil { writing = id }
        }
        guard let writing, !keys.isEmpty else {
            throw FileFault(description: "has no key; \(Self.advice)")
        }
        self.init(writing: writing, keys: keys)
    }

    private static let advice = "write a line ID:KEY with KEY=$(openssl rand -base64 32)"

    private static func key(in line: String, number: Int) throws(FileFault) -> (id: String, key: [UInt8]) {
        guard let colon = line.firstIndex(of: ":") else {
            throw FileFault(description: "line \(number): has no colon after the id; \(advice)")
        }
        let id = String(line[..<colon])
        guard (1...32).contains(id.utf8.count), id.utf8.allSatisfy(isOfAnID), id != plain else {
            throw FileFault(
                description:
                    "line \(number): the id before the colon has to be 1–32 letters, digits, “-” or “_”, and not “plain”"
            )
        }
        let text = trimmed(String(line[line.index(after: colon)...]))
        guard let data = Data(base64Encoded: text) else {
            throw FileFault(description: "line \(number): the key “\(id)” is not base64; \(advice)")
        }
        guard data.count == 32 else {
            throw FileFault(
                description: "line \(number): the key “\(id)” has \(data.count) bytes and not 32; \(advice)")
        }
        return (id, Array(data))
    }

    private static func trimmed(_ text: String) -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\r" }
        var text = Substring(text)
        while let first = text.first, isSpace(first) { text.removeFirst() }
        while let last = text.last, isSpace(last) { text.removeLast() }
        return String(text)
    }

    private static func isOfAnID(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
