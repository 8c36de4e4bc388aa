package import FoundationEssentials
import PushProtocol

/// The header fields of an answer as they came: name, NUL, value, NUL, with names in lower case. Most answers are read
/// for none or one of them.
package struct ProviderFields: Hashable, Sendable {
    private let text: [UInt8]

    package init(nulSeparated text: [UInt8]) { self.text = text }

    /// `fields`, ordered by name.
    package init(_ fields: [String: String]) {
        text = fields.sorted { $0.key < $1.key }.flatMap { Array($0.utf8) + [0] + Array($1.utf8) + [0] }
    }

    /// The first value of the field `name` (lower case).
    package subscript(name: StaticString) -> String? {
        value(named: name) { String(decoding: $0, as: UTF8.self) }
    }

    /// The id that the first value of the field `name` (lower case) is, in either case; `nil` where it is something else.
    package func id(named name: StaticString) -> UUID? { value(named: name, Hexadecimal.uuid) ?? nil }

    private func value<Value>(named name: StaticString, _ read: (UnsafeBufferPointer<UInt8>) -> Value) -> Value? {
        let name = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        return text.withUnsafeBufferPointer { text in
            var start = 0
            while let end = Self.nul(in: text, from: start), let last = Self.nul(in: text, from: end + 1) {
                if end - start == name.count, Self.stands(name, in: text, at: start) {
                    return read(UnsafeBufferPointer(rebasing: text[end + 1..<last]))
                }
                start = last + 1
            }
            return nil
        }
    }

    private static func nul(in text: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        var place = start
        while place < text.count {
            if text[place] == 0 { return place }
            place += 1
        }
        return nil
    }

    private static func stands(
        _ name: UnsafeBufferPointer<UInt8>, in text: UnsafeBufferPointer<UInt8>, at start: Int
    ) -> Bool {
        for place in 0..<name.count where text[start + place] != name[place] { return false }
        return true
    }
}
