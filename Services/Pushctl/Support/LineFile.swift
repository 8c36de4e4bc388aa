import Crypto
import Foundation

/// Reads a file line by line from any position, with one block in memory.
struct LineFile: ~Copyable {
    private static let block = 256 << 10
    /// A longer line is truncated to this length.
    private static let longest = 64 << 10

    private let file: FileHandle
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    let size: Int
    /// The bytes before the next line.
    private(set) var position = 0

    init(path: String) throws(CommandError) {
        guard let file = FileHandle(forReadingAtPath: path), let size = try? file.seekToEnd(),
            (try? file.seek(toOffset: 0)) != nil
        else { throw CommandError("\(path): cannot be read, or is not a regular file") }
        self.file = file
        self.size = Int(size)
    }

    mutating func seek(to position: Int) throws {
        try file.seek(toOffset: UInt64(position))
        (buffer, start, isAtEnd) = ([], 0, false)
        self.position = position
    }

    /// The next line without its terminator; `nil` at the end.
    mutating func next() throws -> [UInt8]? {
        var line: [UInt8] = []
        while true {
            if let end = buffer[start...].firstIndex(of: UInt8(ascii: "\n")) {
                keep(buffer[start..<end], in: &line)
                position += end + 1 - start
                start = end + 1
                return Self.trimmed(line)
            }
            keep(buffer[start...], in: &line)
            position += buffer.count - start
            buffer = isAtEnd ? [] : Array(try file.read(upToCount: Self.block) ?? Data())
            start = 0
            guard buffer.isEmpty else { continue }
            isAtEnd = true
            return line.isEmpty ? nil : Self.trimmed(line)
        }
    }

    /// The next record of a splitter; `nil` at the end.
    mutating func next(_ splitter: inout JSONObjectSplitter) throws -> [UInt8]? {
        while true {
            for index in start..<buffer.count {
                // A byte order mark.
                guard position > 2 || !Self.mark.contains(buffer[index]) else {
                    position += 1
                    continue
                }
                position += 1
                if let record = splitter.take(buffer[index]) {
                    start = index + 1
                    return record
                }
            }
            (buffer, start) = (isAtEnd ? [] : Array(try file.read(upToCount: Self.block) ?? Data()), 0)
            guard buffer.isEmpty else { continue }
            isAtEnd = true
            return splitter.finish()
        }
    }

    /// Requires a file that is not compressed and, if it is a JSON array, complete.
    mutating func requireComplete(_ path: String) throws {
        try file.seek(toOffset: 0)
        let first = try file.read(upToCount: Self.longest) ?? Data()
        try file.seek(toOffset: UInt64(max(0, size - Self.longest)))
        let last = try file.read(upToCount: Self.longest) ?? Data()
        try file.seek(toOffset: UInt64(position + buffer.count - start))
        guard !first.starts(with: [0x1f, 0x8b]) else {
            throw CommandError("\(path): is compressed; decompress it with gunzip first")
        }
        guard first.first(where: Self.isContent) == UInt8(ascii: "[") else { return }
        guard last.last(where: Self.isContent) == UInt8(ascii: "]") else {
            throw CommandError("\(path): is incomplete: it begins with [ and does not end with ]; export it again")
        }
    }

    private static let mark: [UInt8] = [0xef, 0xbb, 0xbf]

    private static func isContent(_ byte: UInt8) -> Bool { byte > UInt8(ascii: " ") && !mark.contains(byte) }

    private func keep(_ bytes: ArraySlice<UInt8>, in line: inout [UInt8]) {
        line += bytes.prefix(max(0, Self.longest - line.count))
    }

    private static func trimmed(_ line: [UInt8]) -> [UInt8] {
        line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    }

    /// A digest of the file's size, beginning and end, and of the import mode.
    ///
    /// - Parameter mode: `nil` for the fingerprint of releases without modes.
    func fingerprint(_ mode: String?) throws -> [UInt8] {
        var hash = SHA256()
        hash.update(data: Array("\(mode.map { "\($0) " } ?? "")\(size) ".utf8))
        for offset in [0, max(0, size - Self.longest)] {
            try file.seek(toOffset: UInt64(offset))
            hash.update(data: try file.read(upToCount: Self.longest) ?? Data())
        }
        try file.seek(toOffset: UInt64(position + buffer.count - start))
        return Array(hash.finalize())
    }
}
