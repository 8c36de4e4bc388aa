import FoundationEssentials

extension TokenCipher {
    /// An error in a key file: the line and the next step. Contains nothing of a key.
    package struct KeyFileError: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// The maximum file size, in bytes.
    package static let maximumFileSize = 65_536

    /// Reads a key file: one key of 32 bytes a line, as `ID:BASE64`. The first line selects the key for new tokens, or
    /// `plain` for no encryption. Empty lines and lines starting with `#` are ignored.
    package init(file bytes: [UInt8]) throws(KeyFileError) {
        guard bytes.count <= Self.maximumFileSize else {
            throw KeyFileError(description: "has more than \(Self.maximumFileSize) bytes; write one key a line")
        }
        var keys: [String: [UInt8]] = [:]
        var writingKeyID: String?
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            guard let text = String(validating: line, as: UTF8.self) else {
                throw KeyFileError(description: "line \(index + 1): is not text; \(Self.advice)")
            }
            let line = Self.trimmed(text)
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            if line == Self.plain {
                guard writingKeyID == nil else {
                    throw KeyFileError(
                        description:
                            "line \(index + 1): “plain” is allowed in the first line only; move it there or delete it")
                }
                writingKeyID = Self.plain
                continue
            }
            let (id, key) = try Self.key(in: line, number: index + 1)
            guard keys.updateValue(key, forKey: id) == nil else {
                throw KeyFileError(
                    description:
                        "line \(index + 1): the id “\(id)” is not unique; give each key another id")
            }
            if writingKeyID == nil { writingKeyID = id }
        }
        guard let writingKeyID, !keys.isEmpty else {
            throw KeyFileError(description: "has no key; \(Self.advice)")
        }
        self.init(writingKeyID: writingKeyID, keys: keys)
    }

    private static let advice = "write a line ID:KEY with KEY=$(openssl rand -base64 32)"

    private static func key(in line: String, number: Int) throws(KeyFileError) -> (id: String, key: [UInt8]) {
        guard let colon = line.firstIndex(of: ":") else {
            throw KeyFileError(description: "line \(number): has no colon after the id; \(advice)")
        }
        let id = String(line[..<colon])
        guard (1...32).contains(id.utf8.count), id.utf8.allSatisfy(isOfAnID), id != plain else {
            throw KeyFileError(
                description:
                    "line \(number): the id before the colon must be 1–32 letters, digits, “-” or “_”, and not “plain”"
            )
        }
        let text = trimmed(String(line[line.index(after: colon)...]))
        guard let data = Data(base64Encoded: text) else {
            throw KeyFileError(description: "line \(number): the key “\(id)” is not base64; \(advice)")
        }
        guard data.count == 32 else {
            throw KeyFileError(
                description: "line \(number): the key “\(id)” has \(data.count) bytes instead of 32; \(advice)")
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
