/// Text in which `*` stands for any characters; `\*` is an asterisk and `\\` a backslash.
struct Wildcard: Hashable, Sendable {
    /// What stands between the asterisks, as UTF-8.
    private let pieces: [[UInt8]]

    /// Fails for two asterisks in a row and for a backslash before anything else.
    init?(_ text: String) {
        var pieces: [[UInt8]] = [[]]
        var escaped = false
        var afterAsterisk = false
        for byte in text.utf8 {
            let isAsterisk = byte == UInt8(ascii: "*") && !escaped
            if escaped {
                guard byte == UInt8(ascii: "*") || byte == UInt8(ascii: "\\") else { return nil }
                pieces[pieces.count - 1].append(byte)
                escaped = false
            } else if byte == UInt8(ascii: "\\") {
                escaped = true
            } else if isAsterisk {
                guard !afterAsterisk else { return nil }
                pieces.append([])
            } else {
                pieces[pieces.count - 1].append(byte)
            }
            afterAsterisk = isAsterisk
        }
        guard !escaped else { return nil }
        self.pieces = pieces
    }

    /// What every text that matches begins with, and what it ends with, as UTF-8; each may be empty.
    var head: [UInt8] { pieces.first ?? [] }
    var tail: [UInt8] { pieces.last ?? [] }

    func matches(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard let first = pieces.first, let last = pieces.last, pieces.count > 1 else { return bytes == pieces.first }
        guard bytes.count >= first.count + last.count, bytes.starts(with: first),
            bytes.suffix(last.count).elementsEqual(last)
        else { return false }
        // The leftmost place for each piece leaves the most room for the others, so nothing needs to be tried twice.
        var rest = bytes[first.count..<(bytes.count - last.count)]
        for piece in pieces.dropFirst().dropLast() {
            guard let found = rest.firstIndex(of: piece) else { return false }
            rest = rest[(found + piece.count)...]
        }
        return true
    }
}

extension ArraySlice<UInt8> {
    /// Where `needle` begins for the first time.
    fileprivate func firstIndex(of needle: [UInt8]) -> Int? {
        guard needle.count <= count else { return nil }
        return (startIndex...(endIndex - needle.count)).first { self[$0...].starts(with: needle) }
    }
}
