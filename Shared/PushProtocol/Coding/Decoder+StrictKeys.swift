extension Decoder {
    /// Returns a container for an object, and throws when the object has a key that `Key` does not declare. Used for
    /// audience filters: ignoring an unknown filter would notify more people than the sender intended.
    func strictContainer<Key: CodingKey & CaseIterable>(keyedBy keys: Key.Type) throws -> KeyedDecodingContainer<Key> {
        let known = Set(Key.allCases.map(\.stringValue))
        let all = try container(keyedBy: AnyKey.self)
        if let other = all.allKeys.map(\.stringValue).filter({ !known.contains($0) }).min() {
            let others = "known are \(known.sorted().joined(separator: ", "))"
            guard other.isPlausibleMemberName else {
                throw DecodingError.dataCorrupted(
                    DecodingError.Context(codingPath: codingPath, debugDescription: "has an unknown member; \(others)"))
            }
            throw DecodingError.dataCorruptedError(
                forKey: AnyKey(stringValue: other), in: all, debugDescription: "is unknown; \(others)")
        }
        return try container(keyedBy: keys)
    }
}

extension String {
    /// Whether the text may be quoted in errors. Longer texts could be a misplaced token; the shortest token, a FID,
    /// has 22 characters.
    fileprivate var isPlausibleMemberName: Bool {
        utf8.count < 22 && utf8.allSatisfy { UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 | 0x20 }
    }
}

private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
