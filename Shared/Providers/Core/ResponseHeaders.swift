package import FoundationEssentials
import PushProtocol

/// The header fields of a response, unparsed: name, NUL, value, NUL, with names in lower case.
///
/// Parses on access, because at most one field is read of most responses.
package struct ResponseHeaders: Hashable, Sendable {
    private let text: [UInt8]

    package init(nulSeparated text: [UInt8]) { self.text = text }

    /// Encodes `fields`, ordered by name.
    package init(_ fields: [String: String]) {
        text = fields.sorted { $0.key < $1.key }.flatMap { Array($0.utf8) + [0] + Array($1.utf8) + [0] }
    }

    /// The first value of the field `name` (lower case).
    package subscript(name: StaticString) -> String? {
        text.withUnsafeBufferPointer { text in
            guard let start = Self.value(of: name, in: text), let end = Self.nul(in: text, from: start) else {
                return nil
            }
            return String(decoding: UnsafeBufferPointer(rebasing: text[start..<end]), as: UTF8.self)
        }
    }

    /// The first value of the field `name` (lower case) as a UUID; `nil` if it is none.
    package func id(named name: StaticString) -> UUID? {
        text.withUnsafeBufferPointer { text in
            guard let start = Self.value(of: name, in: text), start + 36 < text.count, text[start + 36] == 0 else {
                return nil
            }
            return Hexadecimal.uuid(UnsafeBufferPointer(rebasing: text[start..<start + 36]))
        }
    }

    /// The start of the first value of the field `name`.
    private static func value(of name: StaticString, in text: UnsafeBufferPointer<UInt8>) -> Int? {
        let name = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        var start = 0
        while start + name.count < text.count {
            if text[start + name.count] == 0, stands(name, in: text, at: start) { return start + name.count + 1 }
            guard let end = nul(in: text, from: start), let last = nul(in: text, from: end + 1) else { return nil }
            start = last + 1
        }
        return nil
    }

    private static func nul(in text: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        var offset = start
        while offset < text.count {
            if text[offset] == 0 { return offset }
            offset += 1
        }
        return nil
    }

    private static func stands(
        _ name: UnsafeBufferPointer<UInt8>, in text: UnsafeBufferPointer<UInt8>, at start: Int
    ) -> Bool {
        for offset in 0..<name.count where text[start + offset] != name[offset] { return false }
        return true
    }
}
