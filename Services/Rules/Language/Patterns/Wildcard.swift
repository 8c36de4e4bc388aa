/// A text in which `*` matches any characters. `\*` is an asterisk, `\\` a backslash.
struct Wildcard: Hashable, Sendable {
    /// The parts between the asterisks, in UTF-8.
    let pieces: [[UInt8]]

    /// Returns `nil` for two asterisks in a row, and for a backslash before any other character.
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

    /// The first and the last part, in UTF-8: the prefix and suffix of every match. Each may be empty.
    var head: [UInt8] { pieces.first ?? [] }
    var tail: [UInt8] { pieces.last ?? [] }

    func matches(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard let first = pieces.first, let last = pieces.last, pieces.count > 1 else { return bytes == pieces.first }
        guard bytes.count >= first.count + last.count, bytes.starts(with: first),
            bytes.suffix(last.count).elementsEqual(last)
        else { return false }
        // The leftmost match of each piece leaves the most room for the others, so no backtracking is needed.
        var rest = bytes[first.count..<(bytes.count - last.count)]
        for piece in pieces.dropFirst().dropLast() {
            guard let found = rest.firstIndex(of: piece) else { return false }
            rest = rest[(found + piece.count)...]
        }
        return true
    }
}

extension ArraySlice<UInt8> {
    /// Returns the index of the first occurrence of `needle`.
    fileprivate func firstIndex(of needle: [UInt8]) -> Int? {
        guard needle.count <= count else { return nil }
        return (startIndex...(endIndex - needle.count)).first { self[$0...].starts(with: needle) }
    }
}
